"""The two roles of a replica, and what it takes to get into one: to lead in an epoch, or to follow whoever does.

Always true: a partition has a `leadership` exactly while its node leads, and its leader epoch is that of the metadata it was told
last. A leader epoch begins at the log end even while it has no record (rule A12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode
from strandline.metadata.image import PartitionImage
from strandline.replica.dependencies import PartitionDependencies
from strandline.replica.followers import UNKNOWN
from strandline.replica.leadership import Leadership

if TYPE_CHECKING:
    from strandline.replica.partition import Partition


def lead(partition: Partition, state: PartitionImage, dependencies: PartitionDependencies) -> bool:
    """Lead in this epoch; True if whoever was ahead of our metadata, with the epoch or as a new replica, is served now."""
    end, leadership = partition.log.log_end_offset, partition.leadership
    is_new = state.leader_epoch > partition.leader_epoch or leadership is None
    followers = () if leadership is None else tuple(leadership.followers)
    partition.leader_epoch = state.leader_epoch
    if is_new:
        partition.log.epochs.assign(state.leader_epoch, end)
    if leadership is None:
        leadership = partition.leadership = Leadership(
            dependencies.node_id,
            partition.topic_id,
            partition.index,
            state,
            end,
            dependencies,
            dependencies.lag_time_max_s,
            dependencies.now(),
        )
    else:
        leadership.renew(state, end, dependencies.now())
    if is_new:
        reason = f"leader epoch {state.leader_epoch} begins at {end}"
        facts = {"high_watermark": partition.high_watermark, "isr": list(state.isr)}
        dependencies.note("became leader", partition, reason, **facts)
    return is_new or followers != tuple(leadership.followers)


def follow(partition: Partition, state: PartitionImage, dependencies: PartitionDependencies) -> None:
    """Another node leads, or nobody does: whoever waits here must look for it (rule A5)."""
    is_new = state.leader_epoch > partition.leader_epoch
    was_leader, partition.leadership = partition.leadership is not None, None
    partition.leader_epoch = state.leader_epoch
    if is_new:
        partition.leader_high_watermark = UNKNOWN
    if was_leader:
        partition.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if is_new:
        reason = f"node {state.leader} leads in epoch {state.leader_epoch}" if state.has_leader else "nobody leads"
        dependencies.note("became follower", partition, reason, log_end_offset=partition.log.log_end_offset)
