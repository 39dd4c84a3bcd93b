"""The transaction coordinator of a node: its topic is `__transaction_state`, its shards have transactional ids.

Always true: what was settled of a marker reaches the load of the partition that sent it, and no other (TXN-T31).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from strandline.config.node import NodeConfig
from strandline.errors import KafkaError
from strandline.ids import TopicPartition
from strandline.metadata.features import TRANSACTION_VERSION
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage
from strandline.node.coordinator.coordinator import NodeCoordinator
from strandline.node.coordinator.runner import RunnerDependencies
from strandline.node.coordinator.shard_spec import ShardSpec
from strandline.node.coordinator.stats import CoordinatorStats
from strandline.node.coordinator.topic import CoordinatorTopic
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.node.events import Events
from strandline.node.transactions.marker_sender import MarkerSender
from strandline.records.compression import CompressionType
from strandline.transactions.framing import TransactionFraming
from strandline.transactions.markers import EndMarker
from strandline.transactions.shard import TransactionShard


class NodeTransactionDependencies:
    """The dependencies of transaction shards: the newest configuration and metadata, producer ids, where markers go."""

    def __init__(
        self,
        config: Callable[[], NodeConfig],
        applied: Callable[[], MetadataImage],
        take_producer_id: Callable[[], int | None],
        sender: MarkerSender,
        events: Events,
    ) -> None:
        self._config = config
        self._applied = applied
        self._take_producer_id = take_producer_id
        self._sender = sender
        self._events = events

    @property
    def config(self) -> NodeConfig:
        return self._config()

    @property
    def transaction_version(self) -> int:
        return self._applied().features.get(TRANSACTION_VERSION, 0)

    @property
    def record_bytes_max(self) -> int:
        configured = self._applied().config(TOPIC_RESOURCE, TRANSACTION_STATE).get("max.message.bytes")
        return self.config.topic_defaults.max_message_bytes if configured is None else int(configured)

    def take_producer_id(self) -> int | None:
        return self._take_producer_id()

    def send_marker(self, marker: EndMarker) -> None:
        self._sender.send(marker)

    def forget_markers(self, partition: int, coordinator_epoch: int) -> None:
        self._sender.forget(partition, coordinator_epoch)

    def note(self, kind: str, partition: int, reason: str, **facts: object) -> None:
        self._events.note(kind, reason, topic=TRANSACTION_STATE, partition=partition, **facts)


class TransactionCoordinator(NodeCoordinator[TransactionShard]):
    def __init__(
        self,
        transaction_dependencies: NodeTransactionDependencies,
        dependencies: RunnerDependencies,
        topic: CoordinatorTopic,
    ) -> None:
        self.stats = CoordinatorStats()
        spec = ShardSpec(
            TRANSACTION_STATE,
            "transactions",
            TransactionFraming(lambda: transaction_dependencies.transaction_version),
            new_shard=lambda partition, leader_epoch: TransactionShard(
                partition, leader_epoch, transaction_dependencies
            ),
            count=lambda shard: len(shard.transactions),
            codec=lambda: CompressionType.NONE,
            commit_timeout_s=lambda: transaction_dependencies.config.request_timeout_ms / 1000,
            stats=self.stats,
            on_written=lambda records: None,
        )
        super().__init__(spec, dependencies, topic)

    def marked(self, marker: EndMarker, partitions: Collection[TopicPartition]) -> None:
        """These partitions have the marker, or are no more."""
        runner = self._runners.get(marker.coordinator_partition)
        if runner is not None and runner.leader_epoch == marker.coordinator_epoch:
            runner.write(lambda shard, at: shard.marked(marker, partitions, at), _ignore)

    def refused(self, marker: EndMarker) -> None:
        """A leader knows a newer epoch than the marker's."""
        runner = self._runners.get(marker.coordinator_partition)
        if runner is not None and runner.shard is not None and runner.leader_epoch == marker.coordinator_epoch:
            runner.shard.refused(marker)


def _ignore(error: KafkaError) -> None:
    """The coordinator is no more: the next one sends the markers again."""
