"""Which replica a consumer should read from (KIP-392): one in its own rack, if there is one.

Always true: only a consumer is sent elsewhere, only by the leader, and only to a replica that is in sync and has the offset (rule
A16).
"""

from __future__ import annotations

from strandline.api.context import NodeContext
from strandline.config.broker_replication import RACK_AWARE_SELECTOR
from strandline.replica.partition import Partition


def preferred_read_replica(node: NodeContext, partition: Partition, rack_id: str, offset: int) -> int | None:
    """The replica to read from instead of this one; None to stay."""
    leadership, config = partition.leadership, node.config
    if not rack_id or leadership is None or config.replica_selector_class != RACK_AWARE_SELECTOR:
        return None
    if rack_id == config.broker_rack:
        return None
    brokers = node.metadata.image().brokers
    near = [
        follower
        for replica, follower in leadership.followers.items()
        if replica in brokers and brokers[replica].rack == rack_id and leadership.can_serve(replica, offset)
    ]
    if not near:
        return None
    return max(near, key=lambda follower: (follower.log_end_offset, follower.caught_up_at)).replica_id
