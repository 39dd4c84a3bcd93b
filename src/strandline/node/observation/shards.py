"""What can be seen of a group coordinator: its shards, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

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

    @property
    def is_loaded(self) -> bool:
        """The partition is read."""
        return self._runner.shard is not None

    def group_states(self) -> Iterator[tuple[str, str]]:
        """Of each group its type, classic or consumer, and its state by Kafka's name; none until the partition is read."""
        shard = self._runner.shard
        return iter(()) if shard is None else ((each.group_type, each.state_name()) for each in shard.groups.values())

    @property
    def offset_count(self) -> int:
        """How many offsets are committed."""
        shard = self._runner.shard
        return 0 if shard is None else shard.offsets.count

    def check_invariants(self) -> None:
        shard = self._runner.shard
        if shard is not None:
            shard.check_invariants()
            for group in shard.groups.values():
                group.check_invariants()


class ObservedGroupStats(Protocol):
    """Since the node started, of whichever partitions it has led."""

    @property
    def loads(self) -> int:
        """Partitions that were read back."""

    @property
    def failed_loads(self) -> int: ...

    @property
    def load_s(self) -> float:
        """All loads together."""

    @property
    def load_s_max(self) -> float: ...

    @property
    def batches(self) -> int:
        """Appended to `__consumer_offsets`."""

    @property
    def timeouts(self) -> int:
        """Batches that were not committed in time."""

    @property
    def offset_commits(self) -> int:
        """Offsets, not requests."""

    @property
    def offset_deletions(self) -> int: ...

    @property
    def offset_expirations(self) -> int: ...

    @property
    def rebalances(self) -> int:
        """Generations and group epochs that were written down."""
