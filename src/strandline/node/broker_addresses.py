"""Where the other brokers of the cluster listen for brokers, as the metadata says.

Always true: an address is that of the inter-broker listener, or, of a broker that was not restarted since that was
changed, of the listener before it, if both speak the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.config.dynamic import DynamicConfig
from strandline.metadata.image import MetadataImage
from strandline.raft.messages import Address


class BrokerAddresses:
    def __init__(self, dynamic_config: DynamicConfig, image: Callable[[], MetadataImage]) -> None:
        self._dynamic_config = dynamic_config
        self._image = image

    def of(self, broker_id: int) -> Address | None:
        config, broker = self._dynamic_config.current, self._image().brokers.get(broker_id)
        if broker is None:
            return None
        endpoint = broker.endpoint(config.inter_broker_listener)
        previous, protocols = config.previous_inter_broker_listener, config.protocols
        if endpoint is None and previous is not None and protocols[previous] == protocols[config.inter_broker_listener]:
            endpoint = broker.endpoint(previous)  # it was not restarted yet
        return None if endpoint is None else Address(endpoint.host, endpoint.port)
