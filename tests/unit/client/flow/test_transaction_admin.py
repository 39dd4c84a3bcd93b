"""Administration of transactions, put to a made-up broker over real sockets: routed, tried again, and in Kafka's words."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pytest

from strandline.client.flow.transaction_descriptions import (
    AbortTransactionSpec,
    ActiveProducer,
    DescribedTransaction,
    FencingEpoch,
    TransactionListing,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from .test_cluster_admin import API_VERSIONS, METADATA, Answer, Node, through_a_broker
from .test_group_admin import FIND_COORDINATOR, Room

INIT_PRODUCER_ID, WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 22, 27, 61, 65, 66
PARTITION = ("t", 1)
SPEC = AbortTransactionSpec(PARTITION, 7, 3, 0)


def listing(_: Any) -> Any:
    R = messages.response(LIST_TRANSACTIONS)
    rows = (("b", 2, "Ongoing"), ("a", 1, "CompleteCommit"))
    return R(
        transaction_states=[
            R.TransactionState(transactional_id=t, producer_id=p, transaction_state=s) for t, p, s in rows
        ]
    )


def test_transactions_are_listed_in_order_and_filtered_by_the_brokers():
    with through_a_broker({LIST_TRANSACTIONS: listing}) as (admin, node):
        assert admin.list_transactions() == [
            TransactionListing("a", 1, 1, "CompleteCommit"),
            TransactionListing("b", 1, 2, "Ongoing"),
        ]
        admin.list_transactions(states=["Ongoing"], producer_ids=[1, 2], longer_than_ms=0, pattern="a.*")
        everything, some = node.of(LIST_TRANSACTIONS)
    assert (everything.state_filters, list(everything.producer_id_filters)) == ([], [])
    assert (everything.duration_filter, everything.transactional_id_pattern) == (-1, None)
    assert (some.state_filters, list(some.producer_id_filters)) == (["Ongoing"], [1, 2])
    assert (some.duration_filter, some.transactional_id_pattern) == (0, "a.*")


def test_a_broker_that_loads_its_transactions_is_asked_again():
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]
    answer = {LIST_TRANSACTIONS: lambda _: messages.response(LIST_TRANSACTIONS)(error_code=codes.pop(0))}
    with through_a_broker(answer) as (admin, _):
        assert admin.list_transactions() == []
        assert codes == []


def test_a_pattern_that_is_none_is_raised():
    code = ErrorCode.INVALID_REGULAR_EXPRESSION
    answer = {LIST_TRANSACTIONS: lambda _: messages.response(LIST_TRANSACTIONS)(error_code=code)}
    with through_a_broker(answer) as (admin, _), pytest.raises(KafkaError, match="INVALID_REGULAR_EXPRESSION"):
        admin.list_transactions(pattern="(")


@pytest.mark.parametrize(("newest", "filters"), [(0, {"longer_than_ms": 5}), (1, {"pattern": "a"})])
def test_a_filter_that_a_broker_is_too_old_for_is_refused(newest, filters):
    def versions(request: Any) -> Any:
        answer = nodes[0].versions(request)
        for entry in answer.api_keys:
            if entry.api_key == LIST_TRANSACTIONS:
                entry.max_version = newest
        return answer

    nodes: list[Node] = []
    with through_a_broker({LIST_TRANSACTIONS: listing, API_VERSIONS: versions}) as (admin, node):
        nodes.append(node)
        assert len(admin.list_transactions()) == 2
        with pytest.raises(KafkaError, match="node 1 is too old") as refused:
            admin.list_transactions(**filters)
        assert len(node.of(LIST_TRANSACTIONS)) == 1
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_transactions_are_described_by_their_coordinator():
    rounds = [{"a": ErrorCode.NOT_COORDINATOR, "no": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}, {"a": ErrorCode.NONE}]

    def describe(request: Any) -> Any:
        R = messages.response(DESCRIBE_TRANSACTIONS)
        codes = rounds.pop(0)
        return R(
            transaction_states=[
                R.TransactionState(
                    error_code=codes[each],
                    transactional_id=each,
                    transaction_state="Ongoing",
                    transaction_timeout_ms=60_000,
                    transaction_start_time_ms=5,
                    producer_id=7,
                    producer_epoch=3,
                    topics=[R.TopicData(topic="u", partitions=[0]), R.TopicData(topic="t", partitions=[1, 0])],
                )
                for each in request.transactional_ids
            ]
        )

    with Room({DESCRIBE_TRANSACTIONS: describe}) as (admin, node):
        found = admin.describe_transactions(["a", "no"])
        assert {request.key_type for request in node.of(FIND_COORDINATOR)} == {1}
        assert [request.transactional_ids for request in node.of(DESCRIBE_TRANSACTIONS)] == [["a", "no"], ["a"]]
    partitions = (("t", 0), ("t", 1), ("u", 0))
    assert found["a"] == DescribedTransaction("a", 1, "Ongoing", 7, 3, 60_000, 5, partitions)
    assert found["no"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert found["no"].message == "transactional id 'no' does not exist"


def test_a_transactional_id_that_never_began_a_transaction_has_no_start():
    def describe(_: Any) -> Any:
        R = messages.response(DESCRIBE_TRANSACTIONS)
        return R(transaction_states=[R.TransactionState(transactional_id="a", transaction_start_time_ms=-1)])

    with Room({DESCRIBE_TRANSACTIONS: describe}) as (admin, _):
        assert admin.describe_transactions(["a"])["a"].start_ms is None


def test_a_producer_is_fenced_once_its_transaction_is_ended():
    codes = {"a": [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE], "b": [ErrorCode.NONE]}
    codes["c"] = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]

    def init(request: Any) -> Any:
        code = codes[request.transactional_id].pop(0)
        return messages.response(INIT_PRODUCER_ID)(error_code=code, producer_id=7, producer_epoch=4)

    with Room({INIT_PRODUCER_ID: init}) as (admin, node):
        found = admin.fence_producers(["a", "b", "c"], transaction_timeout_ms=900)
        asked = node.of(INIT_PRODUCER_ID)
    assert (found["a"], found["b"]) == (FencingEpoch(7, 4), FencingEpoch(7, 4))
    assert found["c"].code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert sorted(request.transactional_id for request in asked) == ["a", "a", "b", "c"]
    pairs = {(request.producer_id, request.producer_epoch, request.transaction_timeout_ms) for request in asked}
    assert pairs == {(-1, -1, 900)}


def test_txn_t39_a_transaction_is_terminated_or_the_refusal_is_raised():
    codes = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE, ErrorCode.INVALID_TRANSACTION_TIMEOUT]
    answer = {INIT_PRODUCER_ID: lambda _: messages.response(INIT_PRODUCER_ID)(error_code=codes.pop(0))}
    with Room(answer) as (admin, _):
        admin.force_terminate_transaction("a")
        with pytest.raises(KafkaError, match="transactional id 'a' can't have this timeout"):
            admin.force_terminate_transaction("a")


# At partitions


def leading(answers: dict[int, Answer], nodes: list[Node]) -> dict[int, Answer]:
    """The answers of a broker that leads t-1."""

    def metadata(_: Any) -> Any:
        R = messages.response(METADATA)
        partition = R.MetadataResponsePartition(partition_index=1, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        topic = R.MetadataResponseTopic(name="t", partitions=[partition])
        node = nodes[0]
        return R(
            brokers=[R.MetadataResponseBroker(node_id=1, host=node.host, port=node.port)],
            cluster_id="id",
            topics=[topic],
        )

    return {METADATA: metadata, **answers}


class Leader(Room):
    def __init__(self, answers: dict[int, Answer]) -> None:
        self._nodes: list[Node] = []
        self._open = through_a_broker(leading(answers, self._nodes))


def producers(*codes: ErrorCode) -> dict[int, Answer]:
    left = list(codes)

    def describe(request: Any) -> Any:
        R = messages.response(DESCRIBE_PRODUCERS)
        state = R.ProducerState(
            producer_id=7,
            producer_epoch=3,
            last_sequence=9,
            last_timestamp=5,
            coordinator_epoch=-1,
            current_txn_start_offset=4,
        )
        partition = R.PartitionResponse(
            partition_index=1, error_code=left.pop(0), error_message=None, active_producers=[state]
        )
        return R(topics=[R.TopicResponse(name="t", partitions=[partition])])

    return {DESCRIBE_PRODUCERS: describe}


def test_producers_are_described_by_the_leader_wherever_it_is():
    with Leader(producers(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)) as (admin, node):
        assert admin.describe_producers([PARTITION]) == {PARTITION: [ActiveProducer(7, 3, 9, 5, -1, 4)]}
        ((topic,), _) = (request.topics for request in node.of(DESCRIBE_PRODUCERS))
        assert (topic.name, list(topic.partition_indexes)) == ("t", [1])


def test_a_replica_that_is_named_answers_for_itself():
    with Leader(producers(ErrorCode.NOT_LEADER_OR_FOLLOWER)) as (admin, node):
        (answer,) = admin.describe_producers([PARTITION], node_id=1).values()
        assert answer.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(node.of(DESCRIBE_PRODUCERS)) == 1


def markers(*codes: ErrorCode) -> dict[int, Answer]:
    left = list(codes)

    def write(request: Any) -> Any:
        R = messages.response(WRITE_TXN_MARKERS)
        partition = R.WritableTxnMarkerPartitionResult(partition_index=1, error_code=left.pop(0))
        topics = [R.WritableTxnMarkerTopicResult(name="t", partitions=[partition])]
        return R(markers=[R.WritableTxnMarkerResult(producer_id=request.markers[0].producer_id, topics=topics)])

    return {WRITE_TXN_MARKERS: write}


def test_txn_t40_a_transaction_that_hangs_is_aborted_by_the_leader_with_its_own_epoch():
    with Leader(markers(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)) as (admin, node):
        admin.abort_transaction(SPEC)
        first, again = node.of(WRITE_TXN_MARKERS)
    assert first == again
    (marker,) = first.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 0)
    assert (marker.transaction_result, marker.transaction_version) == (False, 0)
    assert [(topic.name, list(topic.partition_indexes)) for topic in marker.topics] == [("t", [1])]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, "has another epoch by now"),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, "newer coordinator"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "may not write markers"),
    ],
)
def test_a_marker_that_is_refused_says_why(code, why):
    with Leader(markers(code)) as (admin, _), pytest.raises(KafkaError, match=why) as refused:
        admin.abort_transaction(SPEC)
    assert refused.value.code is code
    assert "the transaction of producer 7 at t-1 was not aborted" in refused.value.message
