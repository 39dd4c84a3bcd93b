"""How clients of a history reach the cluster.

Always true: they ask every broker in turn, and wait for none of them longer than a few seconds.
"""

from __future__ import annotations

from strandline.client.aio import AsyncClient, ClientConfig
from strandline.client.core.backoff import Backoff
from strandline.histories.shape import Shape, host
from strandline.sim.world import SimNode

BROKER_PORT = 9092
REQUEST_TIMEOUT_MS = 3_000
PATIENCE_MS = 60_000
METADATA_AGE_MS = 300_000


def connect(
    machine: SimNode,
    shape: Shape,
    request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    patience_ms: int = PATIENCE_MS,
    metadata_max_age_ms: int = METADATA_AGE_MS,
) -> AsyncClient:
    """Made inside of the machine's process. An operation that is tried again and again is given up after
    `patience_ms`."""
    config = ClientConfig(
        client_id=machine.name,
        request_timeout_ms=request_timeout_ms,
        default_api_timeout_ms=patience_ms,
        metadata_max_age_ms=metadata_max_age_ms,
        connection_setup_timeout_ms=1_000,
        retry_backoff=Backoff(100, 1_000),
        reconnect_backoff=Backoff(100, 1_000),
    )
    addresses = [f"{host(broker_id)}:{BROKER_PORT}" for broker_id in shape.brokers]
    return AsyncClient(addresses, clock=machine.clock, randomness=machine.randomness, config=config)
