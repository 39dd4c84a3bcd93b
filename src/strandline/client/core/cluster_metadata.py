"""The metadata of a client's cluster: brokers, topics by name and by id, the leader of each partition.

Always true: within one topic id a partition's leader epoch never goes back, whichever broker sends it, however late;
a topic that was deleted and made again has another id, and then nothing that was known of the old one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.core.addresses import Address
from strandline.client.core.versions import FinalizedFeatures
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchResponse
    from strandline.wire.stubs.metadata import MetadataResponse
    from strandline.wire.stubs.produce import ProduceResponse

METADATA: Final = 3
NO_LEADER = -1
NO_EPOCH = -1

REFRESH = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors after which what we know of the cluster may be old."""


class BrokerMetadata(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return self.host, self.port


class PartitionMetadata(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


class TopicMetadata(NamedTuple):
    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: dict[int, PartitionMetadata]


class LeaderMetadata(NamedTuple):
    node_id: int
    leader_epoch: int


class ClusterMetadata:
    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.names: dict[bytes, str] = {}
        self.errors: dict[str, ErrorCode] = {}
        """Why a topic that was asked for is not among the topics."""
        self.on_new_leader: list[Callable[[], None]] = []
        """Called when it is learned that a partition has another leader, or the same one in another epoch."""
        self._features = FinalizedFeatures(NO_EPOCH, {})

    def update(self, response: MetadataResponse, *, is_complete: bool = False) -> None:
        """Take over a Metadata answer.
        Topics it does not mention stay as they are, unless it names all that there are.
        """
        if response.error_code:
            raise KafkaError(error_code(response.error_code), "the broker refused Metadata")
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller_id = response.controller_id
        # Endpoints that a broker named in passing are replaced as well: this list is complete.
        self.brokers = {b.node_id: BrokerMetadata(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        has_new_leader = False
        if is_complete:
            for name in self.topics.keys() - {topic.name for topic in response.topics}:
                self._forget(name)
        for topic in response.topics:
            if topic.name is not None:
                before = self._leaders_of(topic.name)
                self._update_topic(topic.name, topic)
                has_new_leader = has_new_leader or self._leaders_of(topic.name) != before
        if has_new_leader:
            self._notify()

    def _leaders_of(self, name: str) -> dict[int, tuple[int, int]]:
        topic = self.topics.get(name)
        return {} if topic is None else {i: (p.leader, p.leader_epoch) for i, p in topic.partitions.items()}

    def _notify(self) -> None:
        for callback in list(self.on_new_leader):
            callback()

    def _update_topic(self, name: str, answer: MetadataResponse.MetadataResponseTopic) -> None:
        code = error_code(answer.error_code)
        if code is not ErrorCode.NONE:
            self.errors[name] = code
            self._forget(name)
            return
        self.errors.pop(name, None)
        known = self.topics.get(name)
        if (
            known is not None
            and ZERO_UUID not in (known.topic_id, answer.topic_id)
            and known.topic_id != answer.topic_id
        ):
            self._forget(name)
            known = None
        partitions = {}
        for p in answer.partitions:
            received = PartitionMetadata(
                p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes), tuple(p.offline_replicas)
            )
            before = None if known is None else known.partitions.get(p.partition_index)
            is_old = before is not None and NO_EPOCH < received.leader_epoch < before.leader_epoch
            partitions[p.partition_index] = before if is_old and before is not None else received
        self.topics[name] = TopicMetadata(name, answer.topic_id, answer.is_internal, partitions)
        if answer.topic_id != ZERO_UUID:
            self.names[answer.topic_id] = name

    def _forget(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.names.pop(topic.topic_id, None)

    def learn_leader(self, name: str, partition: int, leader: int, leader_epoch: int) -> bool:
        """A broker named the leader in a Produce or Fetch answer (KIP-951).
        True if that is newer than what was known.
        """
        topic = self.topics.get(name)
        known = None if topic is None else topic.partitions.get(partition)
        if topic is None or known is None or leader < 0 or leader_epoch <= known.leader_epoch:
            return False
        if leader not in self.brokers:
            return False
        topic.partitions[partition] = known._replace(leader=leader, leader_epoch=leader_epoch)
        self._notify()
        return True

    def learn_endpoints(self, endpoints: Iterable[FetchResponse.NodeEndpoint | ProduceResponse.NodeEndpoint]) -> None:
        for e in endpoints:
            self.brokers[e.node_id] = BrokerMetadata(e.node_id, e.host, e.port, e.rack)

    def learn_features(self, features: FinalizedFeatures) -> None:
        """What a broker said when its connection was opened. One that lags behind is not believed."""
        if features.epoch > self._features.epoch:
            self._features = features

    @property
    def transaction_version(self) -> int:
        """By what is finalized, never by the versions of a broker: it serves new ones before they may be used."""
        return self._features.levels.get("transaction.version", 0)

    def learn_broker(self, broker: BrokerMetadata) -> None:
        """The address of a node that an answer named; its rack stays as it was."""
        known = self.brokers.get(broker.node_id)
        if known is None or known.address != broker.address:
            self.brokers[broker.node_id] = broker._replace(rack=None if known is None else known.rack)

    def leader(self, name: str, partition: int) -> LeaderMetadata | None:
        """Who leads, if that is known and has an address."""
        topic = self.topics.get(name)
        known = None if topic is None else topic.partitions.get(partition)
        if known is None or known.leader not in self.brokers:
            return None
        return LeaderMetadata(known.leader, known.leader_epoch)

    def topic_id(self, name: str) -> Uuid:
        topic = self.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def name_of(self, name: str, topic_id: Uuid) -> str | None:
        """The name of a topic in an answer, which newer versions give by id only."""
        return name or self.names.get(topic_id)

    def partitions_count(self, name: str) -> int | None:
        topic = self.topics.get(name)
        return None if topic is None or not topic.partitions else len(topic.partitions)
