"""The group coordinator of a node: its topic is `__consumer_offsets`, its shards have groups and their offsets.

Always true: every record that is written is counted as what it is, once.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.groups import framing
from strandline.groups.dependencies import GroupDependencies
from strandline.groups.records import ConsumerGroupMetadataKey, GroupMetadataKey, OffsetCommitKey
from strandline.groups.shard import GroupShard
from strandline.node.coordinator.coordinator import NodeCoordinator
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.node.coordinator.runner import RunnerDependencies
from strandline.node.coordinator.shard_spec import RegularWork, ShardSpec
from strandline.node.coordinator.stats import GroupCoordinatorStats
from strandline.node.coordinator.topic import CoordinatorTopic
from strandline.records.compression import CompressionType


class GroupCoordinator(NodeCoordinator[GroupShard]):
    def __init__(
        self, group_dependencies: GroupDependencies, dependencies: RunnerDependencies, topic: CoordinatorTopic
    ) -> None:
        self.stats = GroupCoordinatorStats()
        self._group_dependencies = group_dependencies
        spec = ShardSpec(
            CONSUMER_OFFSETS,
            "groups",
            framing,
            new_shard=lambda partition, leader_epoch: GroupShard(partition, group_dependencies),
            count=lambda shard: len(shard.groups),
            codec=lambda: CompressionType(group_dependencies.config.offsets_topic_compression_codec),
            commit_timeout_s=lambda: group_dependencies.config.offsets_commit_timeout_ms / 1000,
            stats=self.stats,
            on_written=self._count,
            regular_work=[RegularWork("offsets.retention.check", self._expiry_interval_s, self._expire)],
        )
        super().__init__(spec, dependencies, topic)

    def _expiry_interval_s(self) -> float:
        return self._group_dependencies.config.offsets_retention_check_interval_ms / 1000

    def _expire(self, shard: GroupShard, at: Moment) -> CoordinatorResult | None:
        result = shard.expire_offsets(at)
        if result is not None:
            self.stats.offset_expirations += sum(isinstance(key, OffsetCommitKey) for key, _ in result.records)
        return result

    def _count(self, records: Sequence[CoordinatorRecord]) -> None:
        stats = self.stats
        for key, value in records:
            if isinstance(key, OffsetCommitKey):
                if value is None:
                    stats.offset_deletions += 1
                else:
                    stats.offset_commits += 1
            elif isinstance(key, (GroupMetadataKey, ConsumerGroupMetadataKey)) and value is not None:
                stats.rebalances += 1
