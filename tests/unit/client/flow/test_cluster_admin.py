"""Questions about the cluster, put to made-up brokers and controllers over real sockets."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strandline.client.blocking import Admin, Client
from strandline.client.errors import MismatchedEndpoint
from strandline.client.flow.descriptions import (
    ElectionType,
    Feature,
    QuorumReplicaState,
    RaftEndpoint,
    Reassignment,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.wire import messages
from strandline.wire.feature_upgrades import FeatureUpgradeType
from strandline.wire.headers import read_request_header, response_header
from tests.unit.client.server import Broker, serving_beside

API_VERSIONS, METADATA, DESCRIBE_CLUSTER, DESCRIBE_QUORUM, VOTE = 18, 3, 60, 55, 52
ELECT_LEADERS, UPDATE_FEATURES, UNREGISTER_BROKER, ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 43, 57, 64, 80, 81
ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 45, 46
DIRECTORY = Uuid(bytes(range(16)))
Answer = Callable[[Any], Any]


class Node(Broker):
    """Answers what it was given answers for, and remembers what it was asked."""

    def __init__(self, node_id: int, answers: dict[int, Answer]) -> None:
        super().__init__()
        self.node_id = node_id
        self.asked: list[tuple[int, Any]] = []
        self._answers = {API_VERSIONS: self.versions, **answers}

    def reply(self, frame: bytes) -> bytes | None:
        header = read_request_header(frame)
        key, version = header.api_key, header.api_version
        request = messages.decode_request(key, version, frame, header.body_position)
        self.asked.append((key, request))
        answer = self._answers[key](request)
        body = response_header(key, version, header.correlation_id) + messages.encode_response(key, version, answer)
        return struct.pack(">i", len(body)) + body

    def versions(self, _: Any) -> Any:
        R = messages.response(API_VERSIONS)
        served = {key: messages.request_family(key).versions for key in self._answers}
        return R(
            api_keys=[R.ApiVersion(api_key=k, min_version=v[0], max_version=v[-1]) for k, v in served.items()],
            supported_features=[
                R.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30),
                R.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
            ],
            finalized_features_epoch=41,
            finalized_features=[
                R.FinalizedFeatureKey(name="metadata.version", max_version_level=30, min_version_level=30)
            ],
        )

    def of(self, api_key: int) -> list[Any]:
        return [request for key, request in self.asked if key == api_key]


@contextlib.contextmanager
def through_a_broker(answers: dict[int, Answer]) -> Iterator[tuple[Admin, Node]]:
    def metadata(_: Any) -> Any:
        R = messages.response(METADATA)
        return R(brokers=[R.MetadataResponseBroker(node_id=1, host=node.host, port=node.port)], cluster_id="id")

    node = Node(1, {METADATA: metadata, **answers})
    with serving_beside(node), Client(f"{node.host}:{node.port}") as client:
        yield Admin(client), node


def whole(api_key: int, *codes: ErrorCode) -> dict[int, Answer]:
    """Answers with these codes one after another."""
    left = iter(codes)
    return {api_key: lambda _: messages.response(api_key)(error_code=next(left), error_message="because")}


def describe_quorum(code: ErrorCode = ErrorCode.NONE, leader: int = 101) -> Answer:
    def answer(_: Any) -> Any:
        R = messages.response(DESCRIBE_QUORUM)
        state = R.ReplicaState(
            replica_id=101,
            replica_directory_id=DIRECTORY,
            log_end_offset=9,
            last_fetch_timestamp=5,
            last_caught_up_timestamp=4,
        )
        partition = R.PartitionData(
            error_code=code, leader_id=leader, leader_epoch=3, high_watermark=8, current_voters=[state]
        )
        nodes = [R.Node(node_id=101, listeners=[R.Listener(name="CONTROLLER", host="h", port=10092)])]
        return R(topics=[R.TopicData(topic_name="__cluster_metadata", partitions=[partition])], nodes=nodes)

    return answer


def test_the_quorum_through_a_broker():
    with through_a_broker({DESCRIBE_QUORUM: describe_quorum()}) as (admin, _):
        described = admin.describe_quorum()
    assert (described.leader_id, described.leader_epoch, described.high_watermark) == (101, 3, 8)
    assert described.voters == (QuorumReplicaState(101, DIRECTORY, 9, 5, 4),)
    assert described.observers == ()
    assert described.endpoints == {101: (RaftEndpoint("CONTROLLER", "h", 10092),)}


def test_features_with_their_levels():
    with through_a_broker({}) as (admin, _):
        described = admin.describe_features()
    assert described.features == (Feature("kraft.version", 0, 1, 0), Feature("metadata.version", 7, 30, 30))
    assert described.epoch == 41


def test_an_update_of_features_holds_for_all_or_none():
    answers = whole(UPDATE_FEATURES, ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION)
    with through_a_broker(answers) as (admin, node):
        assert admin.update_features({"a": 1, "b": 2}) == {"a": None, "b": None}
        refused = admin.update_features({"a": 1, "b": 2}, FeatureUpgradeType.SAFE_DOWNGRADE, validate_only=True)
    assert {name: error.code for name, error in refused.items() if error} == dict.fromkeys(
        "ab", ErrorCode.INVALID_UPDATE_VERSION
    )
    first, second = node.of(UPDATE_FEATURES)
    assert [(u.feature, u.max_version_level, u.upgrade_type) for u in first.feature_updates] == [
        ("a", 1, 1),
        ("b", 2, 1),
    ]
    assert (second.validate_only, second.feature_updates[0].upgrade_type) == (True, 2)


def test_what_the_controller_refuses_is_raised_and_what_may_pass_is_tried_again():
    answers = whole(UNREGISTER_BROKER, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED)
    with through_a_broker(answers) as (admin, node):
        admin.unregister_broker(7)
        with pytest.raises(KafkaError, match="because") as refused:
            admin.unregister_broker(7)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert [request.broker_id for request in node.of(UNREGISTER_BROKER)] == [7, 7, 7]


def test_leaders_are_elected_for_some_partitions_or_for_all():
    def elect(_: Any) -> Any:
        R = messages.response(ELECT_LEADERS)
        results = [
            R.PartitionResult(partition_id=0),
            R.PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED, error_message="no"),
        ]
        return R(replica_election_results=[R.ReplicaElectionResult(topic="t", partition_result=results)])

    with through_a_broker({ELECT_LEADERS: elect}) as (admin, node):
        answers = admin.elect_leaders(ElectionType.UNCLEAN, [("t", 0), ("t", 1)])
        admin.elect_leaders(ElectionType.PREFERRED)
    assert answers["t", 0] is None
    assert isinstance(answers["t", 1], KafkaError)
    assert answers["t", 1].code is ErrorCode.ELECTION_NOT_NEEDED
    some, everything = node.of(ELECT_LEADERS)
    assert (some.election_type, [(t.topic, list(t.partitions)) for t in some.topic_partitions]) == (1, [("t", [0, 1])])
    assert (everything.election_type, everything.topic_partitions) == (0, None)


def test_partitions_are_reassigned_and_reassignments_cancelled():
    def alter(_: Any) -> Any:
        R = messages.response(ALTER_REASSIGNMENTS)
        results = [
            R.ReassignablePartitionResponse(partition_index=0, error_message=None),
            R.ReassignablePartitionResponse(
                partition_index=1, error_code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, error_message="none"
            ),
        ]
        return R(responses=[R.ReassignableTopicResponse(name="t", partitions=results)], error_message=None)

    with through_a_broker({ALTER_REASSIGNMENTS: alter}) as (admin, node):
        answers = admin.alter_partition_reassignments(
            {("t", 0): [2, 1], ("t", 1): None}, allow_replication_factor_change=False
        )
    assert answers["t", 0] is None
    assert isinstance(answers["t", 1], KafkaError)
    assert answers["t", 1].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    (asked,) = node.of(ALTER_REASSIGNMENTS)
    assert not asked.allow_replication_factor_change
    wanted = [(t.name, p.partition_index, p.replicas and list(p.replicas)) for t in asked.topics for p in t.partitions]
    assert wanted == [("t", 0, [2, 1]), ("t", 1, None)]


def test_reassignments_of_some_partitions_or_of_all():
    moved = iter([ErrorCode.NOT_CONTROLLER, ErrorCode.NONE, ErrorCode.NONE])

    def listed(_: Any) -> Any:
        R = messages.response(LIST_REASSIGNMENTS)
        one = R.OngoingPartitionReassignment(
            partition_index=3, replicas=[2, 3, 1], adding_replicas=[2], removing_replicas=[1]
        )
        topics = [R.OngoingTopicReassignment(name="t", partitions=[one])]
        return R(error_code=next(moved), error_message=None, topics=topics)

    with through_a_broker({LIST_REASSIGNMENTS: listed}) as (admin, node):
        found = admin.list_partition_reassignments([("t", 3), ("t", 4)])
        assert admin.list_partition_reassignments() == found == {("t", 3): Reassignment((2, 3, 1), (2,), (1,))}
    first, again, everything = node.of(LIST_REASSIGNMENTS)
    assert first == again
    assert [(t.name, list(t.partition_indexes)) for t in first.topics] == [("t", [3, 4])]
    assert everything.topics is None


def test_voters_are_added_and_removed():
    answers = whole(ADD_RAFT_VOTER, ErrorCode.NONE) | whole(REMOVE_RAFT_VOTER, ErrorCode.VOTER_NOT_FOUND)
    with through_a_broker(answers) as (admin, node):
        admin.add_raft_voter(104, DIRECTORY, [RaftEndpoint("CONTROLLER", "h", 10095)])
        with pytest.raises(KafkaError) as refused:
            admin.remove_raft_voter(105, DIRECTORY)
    assert refused.value.code is ErrorCode.VOTER_NOT_FOUND
    (added,) = node.of(ADD_RAFT_VOTER)
    assert (added.voter_id, added.voter_directory_id, added.listeners[0].port) == (104, DIRECTORY, 10095)


def test_controllers_are_asked_without_a_broker_and_the_active_one_is_found():
    controllers: dict[int, Node] = {}
    active = 101

    def describe(_: Any) -> Any:
        R = messages.response(DESCRIBE_CLUSTER)
        nodes = [R.DescribeClusterBroker(broker_id=i, host=n.host, port=n.port) for i, n in controllers.items()]
        return R(cluster_id="id", controller_id=active, endpoint_type=2, brokers=nodes)

    def unregister(node_id: int) -> Answer:
        def answer(_: Any) -> Any:
            code = ErrorCode.NONE if node_id == 102 else ErrorCode.NOT_CONTROLLER
            return messages.response(UNREGISTER_BROKER)(error_code=code)

        return answer

    for node_id in (101, 102):
        controllers[node_id] = Node(node_id, {DESCRIBE_CLUSTER: describe, UNREGISTER_BROKER: unregister(node_id)})
    with contextlib.ExitStack() as stack:
        for node in controllers.values():
            stack.enter_context(serving_beside(node))
        first = controllers[101]
        client = stack.enter_context(Client(f"{first.host}:{first.port}", controllers=True))
        admin = Admin(client)
        described = admin.describe_cluster()
        assert (described.controller_id, [broker.node_id for broker in described.brokers]) == (101, [101, 102])
        active = 102  # the client finds out by asking the wrong one
        admin.unregister_broker(3)
    assert len(controllers[101].of(UNREGISTER_BROKER)) == len(controllers[102].of(UNREGISTER_BROKER)) == 1
    assert {request.endpoint_type for request in controllers[101].of(DESCRIBE_CLUSTER)} == {2}


def test_a_controllers_address_among_the_brokers_is_named_with_its_option():
    node = Node(101, {VOTE: lambda _: None})
    with (
        serving_beside(node),
        Client(f"{node.host}:{node.port}") as client,
        pytest.raises(MismatchedEndpoint) as refused,
    ):
        Admin(client).list_topics()
    assert refused.value.is_controller
    assert refused.value.message == (
        f"{node.host}:{node.port} is the listener of a controller, and a broker is wanted: "
        "this address belongs in bootstrap.controllers, a broker in bootstrap.servers"
    )


def test_a_brokers_address_among_the_controllers_is_named_with_its_option():
    def describe(_: Any) -> Any:
        return messages.response(DESCRIBE_CLUSTER)(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE)

    node = Node(1, {DESCRIBE_CLUSTER: describe})
    with (
        serving_beside(node),
        Client(f"{node.host}:{node.port}", controllers=True) as client,
        pytest.raises(MismatchedEndpoint) as refused,
    ):
        Admin(client).describe_cluster()
    assert not refused.value.is_controller
    assert refused.value.message.endswith("a controller is wanted: this address belongs in bootstrap.servers")
