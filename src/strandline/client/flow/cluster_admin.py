"""Administration of the cluster as a whole: its nodes, its metadata quorum, its features, who leads, and who holds
what.

Always true: through a broker or straight to the controllers, the answers are the same; nothing is cached here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from strandline import __version__
from strandline.client.core.by_topic import by_topic
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.flow.client import FlowClient
from strandline.client.flow.controllers import DESCRIBE_CLUSTER, endpoint_type, for_controller
from strandline.client.flow.descriptions import (
    ClusterDescription,
    ElectionType,
    Feature,
    FeaturesDescription,
    QuorumInfo,
    QuorumReplicaState,
    RaftEndpoint,
    Reassignment,
)
from strandline.client.flow.retry import Answers, check, retrying
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.wire import messages
from strandline.wire.feature_upgrades import FeatureUpgradeType

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition_reassignments import AlterPartitionReassignmentsRequest
    from strandline.wire.stubs.base import ApiRequest, ApiResponse
    from strandline.wire.stubs.describe_quorum import DescribeQuorumResponse

T = TypeVar("T")
R = TypeVar("R", bound="ApiResponse")

API_VERSIONS: Final = 18
ELECT_LEADERS: Final = 43
DESCRIBE_QUORUM: Final = 55
UPDATE_FEATURES: Final = 57
UNREGISTER_BROKER: Final = 64
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
ADD_RAFT_VOTER: Final = 80
REMOVE_RAFT_VOTER: Final = 81
METADATA_TOPIC = "__cluster_metadata"


class Answer(Protocol):
    """Of one thing, or of all; many have an `error_message` besides."""

    error_code: int


class ClusterAdmin:
    def __init__(self, client: FlowClient) -> None:
        self._client = client

    async def call(self, api_key: int, message: ApiRequest[R], *, node_id: int | None = None) -> R:
        """One request to this node, or to any; tried again while that may help.
        Codes inside the reply are the caller's.
        """

        async def attempt() -> R:
            await self._client.ensure_known()
            return await self._client.request(node_id, api_key, message)

        return await retrying(self._client, attempt)

    async def to_controller(self, api_key: int, message: ApiRequest[R], verify: Callable[[R], None]) -> R:
        """As `call`, to the active controller; brokers pass on what is for it.
        What `verify` raises may be tried again.
        """

        async def attempt() -> R:
            await self._client.ensure_known()
            response = await self._client.request(for_controller(self._client), api_key, message)
            verify(response)
            return response

        return await retrying(self._client, attempt)

    async def describe_cluster(self, *, include_fenced_brokers: bool = False) -> ClusterDescription:
        """Brokers; of a client of controllers, the controllers, and then `controller_id` is the active one."""
        request = messages.request(DESCRIBE_CLUSTER)(
            include_fenced_brokers=include_fenced_brokers, endpoint_type=endpoint_type(self._client)
        )
        response = await self.call(DESCRIBE_CLUSTER, request)
        check(response.error_code, response.error_message)
        brokers = sorted(BrokerMetadata(b.broker_id, b.host, b.port, b.rack) for b in response.brokers)
        fenced = frozenset(b.broker_id for b in response.brokers if b.is_fenced)
        return ClusterDescription(response.cluster_id, response.controller_id, tuple(brokers), fenced)

    async def unregister_broker(self, broker_id: int) -> None:
        await self.to_controller(
            UNREGISTER_BROKER, messages.request(UNREGISTER_BROKER)(broker_id=broker_id), _check_whole
        )

    # The metadata quorum

    async def describe_quorum(self) -> QuorumInfo:
        Describe = messages.request(DESCRIBE_QUORUM)
        partition = Describe.PartitionData(partition_index=0)
        topic = Describe.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        response = await self.to_controller(DESCRIBE_QUORUM, Describe(topics=[topic]), _check_quorum)
        described = response.topics[0].partitions[0]
        return QuorumInfo(
            described.leader_id,
            described.leader_epoch,
            described.high_watermark,
            tuple(_replica(state) for state in described.current_voters),
            tuple(_replica(state) for state in described.observers),
            {
                node.node_id: tuple(RaftEndpoint(at.name, at.host, at.port) for at in node.listeners)
                for node in response.nodes
            },
        )

    async def add_raft_voter(
        self, voter_id: int, directory_id: Uuid, endpoints: Iterable[RaftEndpoint], *, timeout_ms: int = 30_000
    ) -> None:
        Add = messages.request(ADD_RAFT_VOTER)
        message = Add(
            cluster_id=None,
            timeout_ms=timeout_ms,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=[Add.Listener(name=at.listener, host=at.host, port=at.port) for at in endpoints],
        )
        await self.to_controller(ADD_RAFT_VOTER, message, _check_whole)

    async def remove_raft_voter(self, voter_id: int, directory_id: Uuid) -> None:
        message = messages.request(REMOVE_RAFT_VOTER)(
            cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id
        )
        await self.to_controller(REMOVE_RAFT_VOTER, message, _check_whole)

    # Features

    async def describe_features(self, node_id: int | None = None) -> FeaturesDescription:
        """What this node supports and knows to hold, or any node."""
        message = messages.request(API_VERSIONS)(client_software_name="strandline", client_software_version=__version__)
        response = await self.call(API_VERSIONS, message, node_id=node_id)
        check(response.error_code, "describing features")
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        features = sorted(
            Feature(feature.name, feature.min_version, feature.max_version, levels.get(feature.name, 0))
            for feature in response.supported_features
        )
        epoch = response.finalized_features_epoch
        return FeaturesDescription(tuple(features), None if epoch < 0 else epoch)

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: FeatureUpgradeType = FeatureUpgradeType.UPGRADE,
        *,
        validate_only: bool = False,
        timeout_ms: int = 30_000,
    ) -> dict[str, KafkaError | None]:
        """All or none since Kafka 4.0; brokers before that answered for each."""
        Update = messages.request(UPDATE_FEATURES)
        updates = [
            Update.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
            for feature, level in levels.items()
        ]
        message = Update(timeout_ms=timeout_ms, feature_updates=updates, validate_only=validate_only)
        response = await self.to_controller(UPDATE_FEATURES, message, _check_moved)
        whole = answer_or_error(response, None)
        single = {item.feature: answer_or_error(item, None) for item in getattr(response, "results", ())}
        return {feature: whole or single.get(feature) for feature in levels}

    # Leaders

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int = 30_000,
    ) -> Answers[None]:
        """For these partitions, or for all that need it (None)."""
        Elect = messages.request(ELECT_LEADERS)
        topics = None
        if partitions is not None:
            topics = [Elect.TopicPartitions(topic=name, partitions=i) for name, i in by_topic(partitions).items()]
        message = Elect(
            election_type=election_type,
            topic_partitions=topics,
            timeout_ms=timeout_ms,
        )
        response = await self.to_controller(ELECT_LEADERS, message, _check_whole)
        return {
            (t.topic, p.partition_id): answer_or_error(p, None)
            for t in response.replica_election_results
            for p in t.partition_result
        }

    # Reassignments

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int = 30_000,
    ) -> Answers[None]:
        """Move each partition to these replicas, or cancel its move (None). The answer comes when they have begun."""
        Alter = messages.request(ALTER_PARTITION_REASSIGNMENTS)
        topics: dict[str, AlterPartitionReassignmentsRequest.ReassignableTopic] = {}
        for (topic, partition), replicas in targets.items():
            entry = topics.setdefault(topic, Alter.ReassignableTopic(name=topic, partitions=[]))
            wanted = None if replicas is None else list(replicas)
            entry.partitions.append(Alter.ReassignablePartition(partition_index=partition, replicas=wanted))
        message = Alter(
            timeout_ms=timeout_ms,
            topics=list(topics.values()),
            allow_replication_factor_change=allow_replication_factor_change,
        )
        response = await self.to_controller(ALTER_PARTITION_REASSIGNMENTS, message, _check_whole)
        return {(t.name, p.partition_index): answer_or_error(p, None) for t in response.responses for p in t.partitions}

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, Reassignment]:
        """Those under way among these partitions, or among all (None)."""
        List = messages.request(LIST_PARTITION_REASSIGNMENTS)
        topics = None
        if partitions is not None:
            topics = [
                List.ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ]
        message = List(timeout_ms=timeout_ms, topics=topics)
        response = await self.to_controller(LIST_PARTITION_REASSIGNMENTS, message, _check_whole)
        return {
            (t.name, p.partition_index): Reassignment(
                tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
            )
            for t in response.topics
            for p in t.partitions
        }


def answer_or_error(item: Answer, value: T, what: str = "") -> T | KafkaError:
    """The value for one thing of an answer, or the error that was given instead."""
    if item.error_code == ErrorCode.NONE:
        return value
    return KafkaError(error_code(item.error_code), getattr(item, "error_message", None) or what)


def _check_whole(response: Answer) -> None:
    check(response.error_code, getattr(response, "error_message", None))


def _check_moved(response: Answer) -> None:
    if response.error_code == ErrorCode.NOT_CONTROLLER:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "the controller moved")


def _check_quorum(response: DescribeQuorumResponse) -> None:
    _check_whole(response)
    (partition,) = [partition for topic in response.topics for partition in topic.partitions]
    check(partition.error_code, getattr(partition, "error_message", None))


def _replica(state: DescribeQuorumResponse.ReplicaState) -> QuorumReplicaState:
    # Versions 0 and 1 do not have the directory.
    directory_id = getattr(state, "replica_directory_id", None) or ZERO_UUID
    return QuorumReplicaState(
        state.replica_id,
        Uuid(directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
