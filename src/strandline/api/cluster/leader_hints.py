"""The current leader, as an answer to a client that asked the wrong broker (KIP-951).

Always true: a hint is newer than what the client knew, as far as this broker knows, or there is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.replica.partition import Partition
from strandline.wire.node_endpoints import NodeEndpoint

HINTED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def current_leader(partition: Partition) -> tuple[int, int] | None:
    """Leader id and epoch; None if there is no leader."""
    state = partition.state
    return (state.leader, state.leader_epoch) if state.has_leader else None


def endpoints(ctx: RequestContext, leaders: Iterable[int]) -> list[NodeEndpoint]:
    """Where those leaders are for clients of this listener."""
    brokers = ctx.node.metadata.image().brokers
    found = []
    for leader in dict.fromkeys(leaders):
        broker = brokers.get(leader)
        endpoint = None if broker is None or broker.fenced else broker.endpoint(ctx.listener)
        if broker is not None and endpoint is not None:
            found.append(NodeEndpoint(leader, endpoint.host, endpoint.port, broker.rack))
    return found
