"""What can be seen of a group coordinator's shard."""

from __future__ import annotations

from strandline.groups.shard import GroupShard
from strandline.node.coordinator.runner import ShardRunner


class ObservedShard:
    """A partition of `__consumer_offsets` that this node leads, in one leader epoch."""

    __slots__ = ("_runner",)

    def __init__(self, runner: ShardRunner[GroupShard]) -> None:
        self._runner = runner

    @property
    def leader_epoch(self) -> int:
        return self._runner.leader_epoch

    @property
    def log_end_offset(self) -> int:
        return self._runner.partition.log.log_end_offset

    @property
    def shard(self) -> GroupShard | None:
        """The groups; None until the partition is read. Not to be changed."""
        return self._runner.shard

    def check_invariants(self) -> None:
        shard = self._runner.shard
        if shard is not None:
            shard.check_invariants()
            for group in shard.groups.values():
                group.check_invariants()
