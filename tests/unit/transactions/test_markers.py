"""Which markers go to whom, and how long they are tried (TXN-T30 to TXN-T33)."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.markers import RETRY_S, EndMarker, MarkerQueue, MarkerRequest
from strandline.transactions.metadata import ProducerIdAndEpoch
from tests.unit.transactions.stage import A, B

NONE = ErrorCode.NONE
C = ("c", 2)


def marker_of(
    producer_id: int, *partitions: TopicPartition, coordinator_epoch: int = 5, partition: int = 3
) -> EndMarker:
    return EndMarker(
        transactional_id=f"t{producer_id}",
        producer=ProducerIdAndEpoch(producer_id, 1),
        commit=True,
        transaction_version=2,
        coordinator_partition=partition,
        coordinator_epoch=coordinator_epoch,
        partitions=frozenset(partitions),
    )


class Leaders:
    def __init__(self, **of_topic: int | None) -> None:
        self.of_topic = of_topic

    def exists(self, partition: TopicPartition) -> bool:
        return partition[0] in self.of_topic

    def leader(self, partition: TopicPartition) -> int | None:
        return self.of_topic.get(partition[0])


LEADERS = Leaders(a=1, b=2, c=1)


def plan(requests: list[MarkerRequest]) -> dict[int, dict[int, set[TopicPartition]]]:
    return {
        request.broker_id: {marker.producer.producer_id: set(found) for marker, found in request.entries.items()}
        for request in requests
    }


def test_txn_t30_partitions_are_gathered_by_leader() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A, B))
    queue.add(marker_of(8, A, C))
    requests = queue.take(0, LEADERS)
    assert plan(requests) == {1: {7: {A}, 8: {A, C}}, 2: {7: {B}}}
    assert len(queue) == 4
    assert queue.take(0, LEADERS) == []


def test_one_request_per_broker_is_under_way() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A))
    (first,) = queue.take(0, LEADERS)
    queue.add(marker_of(8, A, B))
    assert plan(queue.take(0, LEADERS)) == {2: {8: {B}}}
    settled = queue.answered(first, {7: {A: NONE}}, 0)
    assert [marker.producer.producer_id for marker in settled.done] == [7]
    assert plan(queue.take(0, LEADERS)) == {1: {8: {A}}}


def test_a_producer_id_is_once_in_a_request() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A, coordinator_epoch=5))
    queue.add(marker_of(7, A, coordinator_epoch=6))
    (first,) = queue.take(0, LEADERS)
    assert [marker.coordinator_epoch for marker in first.entries] == [5]
    queue.answered(first, {7: {A: NONE}}, 0)
    (second,) = queue.take(0, LEADERS)
    assert [marker.coordinator_epoch for marker in second.entries] == [6]


def test_txn_t32_a_partition_without_a_leader_waits() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A))
    assert queue.take(0, Leaders(a=None)) == []
    assert (len(queue), queue.next_s(0)) == (1, None)
    assert queue.take(0, LEADERS) == [], "only the metadata can say that it has one"
    assert queue.metadata_changed(LEADERS) == {}
    assert plan(queue.take(0, LEADERS)) == {1: {7: {A}}}


def test_a_partition_that_waits_for_a_leader_holds_up_no_retry_of_another() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A))
    queue.add(marker_of(8, B))
    leaders = Leaders(a=None, b=2)
    (request,) = queue.take(5, leaders)
    queue.answered(request, {8: {B: ErrorCode.NOT_ENOUGH_REPLICAS}}, 5)
    assert queue.next_s(5) == 5 + RETRY_S
    queue.forget(3, 5)
    assert len(queue) == 0


def test_txn_t32_a_deleted_topic_is_done() -> None:
    queue = MarkerQueue()
    marker = marker_of(7, A, B)
    queue.add(marker)
    assert queue.metadata_changed(Leaders(b=2)) == {marker: [A]}
    assert plan(queue.take(0, LEADERS)) == {2: {7: {B}}}
    assert queue.metadata_changed(Leaders()) == {}


def test_txn_t32_errors_are_tried_again_with_the_leader_looked_up_anew() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A, C))
    (request,) = queue.take(0, LEADERS)
    settled = queue.answered(request, {7: {A: ErrorCode.NOT_LEADER_OR_FOLLOWER, C: NONE}}, 10)
    assert list(settled.done.values()) == [[C]]
    assert queue.take(10, LEADERS) == []
    assert queue.next_s(10) == 10 + RETRY_S
    assert plan(queue.take(10 + RETRY_S, Leaders(a=2))) == {2: {7: {A}}}
    assert queue.next_s(10 + RETRY_S) is None


def test_txn_t32_no_answer_or_half_of_one_is_tried_again() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A, C))
    (request,) = queue.take(0, LEADERS)
    assert queue.answered(request, None, 0) == ({}, [])
    (request,) = queue.take(1, LEADERS)
    assert list(queue.answered(request, {7: {A: NONE}}, 1).done.values()) == [[A]]
    assert plan(queue.take(2, LEADERS)) == {1: {7: {C}}}


def test_txn_t33_a_refused_marker_is_dropped_with_all_its_partitions() -> None:
    queue = MarkerQueue()
    marker = marker_of(7, A, B)
    queue.add(marker)
    at_1, at_2 = sorted(queue.take(0, LEADERS), key=lambda request: request.broker_id)
    assert queue.answered(at_1, {7: {A: ErrorCode.TRANSACTION_COORDINATOR_FENCED}}, 0).refused == [marker]
    queue.answered(at_2, {7: {B: ErrorCode.NOT_ENOUGH_REPLICAS}}, 0)
    assert queue.take(9, LEADERS) == []


def test_txn_t31_exactly_one_load_is_forgotten() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A))
    (request,) = queue.take(0, LEADERS)
    queue.add(marker_of(8, B))
    newer = marker_of(7, A, coordinator_epoch=6)
    other = marker_of(9, B, partition=4)
    queue.add(newer)
    queue.add(other)
    queue.forget(3, 5)
    assert queue.answered(request, {7: {A: NONE}}, 0) == ({}, [])
    assert plan(queue.take(0, LEADERS)) == {1: {7: {A}}, 2: {9: {B}}}


def test_a_request_is_bounded() -> None:
    queue = MarkerQueue()
    for producer_id in range(3):
        queue.add(marker_of(producer_id, *(("a", number) for number in range(1500))))
    sent = 0
    for _ in range(3):
        (request,) = queue.take(0, LEADERS)
        assert request.partitions_count <= 2000
        sent += request.partitions_count
        queue.answered(
            request,
            {of: dict.fromkeys((("a", n) for n in range(1500)), NONE) for of in range(3)},
            0,
        )
    assert sent == 4500
    assert len(queue) == 0


def test_partitions_without_a_leader_are_counted() -> None:
    queue = MarkerQueue()
    queue.add(marker_of(7, A, B))
    queue.add(marker_of(8, B, C))
    assert queue.leaderless_count(LEADERS) == 0
    assert queue.leaderless_count(Leaders(a=1, b=None, c=1)) == 2
