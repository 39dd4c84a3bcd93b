"""Which markers go to whom, and how long they are tried (TXN-T30 to TXN-T33)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.markers import (
    RETRY_MAX_S,
    RETRY_S,
    ROUTED_PER_TURN_MAX,
    WRITTEN_PER_TURN_MAX,
    EndMarker,
    MarkerQueue,
    MarkerRequest,
    Settled,
)
from strandline.transactions.metadata import ProducerIdAndEpoch
from tests.unit.transactions.stage import A, B

NONE = ErrorCode.NONE
C = ("c", 2)
HERE = 9


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


NOTHING = Settled({}, [], {})


def sent(queue: MarkerQueue, now: float = 0, leaders: Leaders = LEADERS) -> list[MarkerRequest]:
    return queue.take(now, leaders).requests


def plan(requests: list[MarkerRequest]) -> dict[int, dict[int, set[TopicPartition]]]:
    return {
        request.broker_id: {marker.producer.producer_id: set(found) for marker, found in request.entries.items()}
        for request in requests
    }


def test_txn_t30_partitions_are_gathered_by_leader() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A, B))
    queue.add(marker_of(8, A, C))
    requests = sent(queue)
    assert plan(requests) == {1: {7: {A}, 8: {A, C}}, 2: {7: {B}}}
    assert len(queue) == 4
    assert sent(queue) == []


def test_one_request_per_broker_is_under_way() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    (first,) = sent(queue)
    queue.add(marker_of(8, A, B))
    assert plan(sent(queue)) == {2: {8: {B}}}
    settled = queue.answered(first, {7: {A: NONE}}, 0)
    assert [marker.producer.producer_id for marker in settled.done] == [7]
    assert plan(sent(queue)) == {1: {8: {A}}}


def test_a_producer_id_is_once_in_a_request() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A, coordinator_epoch=5))
    queue.add(marker_of(7, A, coordinator_epoch=6))
    (first,) = sent(queue)
    assert [marker.coordinator_epoch for marker in first.entries] == [5]
    queue.answered(first, {7: {A: NONE}}, 0)
    (second,) = sent(queue)
    assert [marker.coordinator_epoch for marker in second.entries] == [6]


def test_txn_t32_a_partition_without_a_leader_waits() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    assert sent(queue, 0, Leaders(a=None)) == []
    assert (len(queue), queue.next_s()) == (1, None)
    assert sent(queue) == [], "only the metadata can say that it has one"
    queue.metadata_changed()
    assert plan(sent(queue)) == {1: {7: {A}}}


def test_a_partition_that_waits_for_a_leader_holds_up_no_retry_of_another() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    queue.add(marker_of(8, B))
    leaders = Leaders(a=None, b=2)
    (request,) = sent(queue, 5, leaders)
    queue.answered(request, {8: {B: ErrorCode.NOT_ENOUGH_REPLICAS}}, 5)
    assert queue.next_s() == 5 + RETRY_S
    queue.forget(3, 5)
    assert len(queue) == 0


def test_txn_t32_a_deleted_topic_is_done() -> None:
    queue = MarkerQueue(HERE)
    marker = marker_of(7, A, B)
    queue.add(marker)
    taken = queue.take(0, Leaders(b=2))
    assert (taken.gone, plan(taken.requests), len(queue)) == ({marker: [A]}, {2: {7: {B}}}, 1)
    queue.answered(taken.requests[0], None, 0)
    assert queue.take(9, Leaders()).gone == {marker: [B]}
    assert len(queue) == 0


def test_txn_t32_errors_are_tried_again_with_the_leader_looked_up_anew() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A, C))
    (request,) = sent(queue)
    settled = queue.answered(request, {7: {A: ErrorCode.NOT_LEADER_OR_FOLLOWER, C: NONE}}, 10)
    assert list(settled.done.values()) == [[C]]
    assert sent(queue, 10, LEADERS) == []
    assert queue.next_s() == 10 + RETRY_S
    assert plan(sent(queue, 10 + RETRY_S, Leaders(a=2))) == {2: {7: {A}}}
    assert queue.next_s() is None


def test_txn_t32_no_answer_or_half_of_one_is_tried_again() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A, C))
    (request,) = sent(queue)
    assert queue.answered(request, None, 0) == NOTHING
    (request,) = sent(queue, 1, LEADERS)
    assert list(queue.answered(request, {7: {A: NONE}}, 1).done.values()) == [[A]]
    assert plan(sent(queue, 2, LEADERS)) == {1: {7: {C}}}


def test_txn_t33_a_refused_marker_is_dropped_with_all_its_partitions() -> None:
    queue = MarkerQueue(HERE)
    marker = marker_of(7, A, B)
    queue.add(marker)
    at_1, at_2 = sorted(sent(queue), key=lambda request: request.broker_id)
    assert queue.answered(at_1, {7: {A: ErrorCode.TRANSACTION_COORDINATOR_FENCED}}, 0).refused == [marker]
    queue.answered(at_2, {7: {B: ErrorCode.NOT_ENOUGH_REPLICAS}}, 0)
    assert sent(queue, 9, LEADERS) == []


def test_txn_t31_exactly_one_load_is_forgotten() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    (request,) = sent(queue)
    queue.add(marker_of(8, B))
    newer = marker_of(7, A, coordinator_epoch=6)
    other = marker_of(9, B, partition=4)
    queue.add(newer)
    queue.add(other)
    queue.forget(3, 5)
    assert queue.answered(request, {7: {A: NONE}}, 0) == NOTHING
    assert plan(sent(queue)) == {1: {7: {A}}, 2: {9: {B}}}


def test_a_request_is_bounded() -> None:
    queue = MarkerQueue(HERE)
    for producer_id in range(3):
        queue.add(marker_of(producer_id, *(("a", number) for number in range(1500))))
    count = 0
    for _ in range(3):
        (request,) = sent(queue)
        assert request.partitions_count <= 2000
        count += request.partitions_count
        queue.answered(
            request,
            {of: dict.fromkeys((("a", n) for n in range(1500)), NONE) for of in range(3)},
            0,
        )
    assert count == 4500
    assert len(queue) == 0


def test_partitions_without_a_leader_are_counted() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A, B))
    queue.add(marker_of(8, B, C))
    assert queue.leaderless_count(LEADERS) == 0
    assert queue.leaderless_count(Leaders(a=1, b=None, c=1)) == 2


# At this node


def test_what_is_led_here_is_settled_partition_by_partition() -> None:
    queue = MarkerQueue(1)
    first, second = marker_of(7, A, B), marker_of(8, C)
    queue.add(first)
    taken = queue.take(0, LEADERS)
    assert ([place.partition for place in taken.here], plan(taken.requests)) == ([A], {2: {7: {B}}})
    queue.add(second)
    assert [place.partition for place in queue.take(0, LEADERS).here] == [C], "it waits for no other"
    assert queue.written(taken.here[0], NONE, 0).done == {first: [A]}
    assert len(queue) == 2


def test_a_turn_writes_so_many() -> None:
    queue = MarkerQueue(1)
    queue.add(marker_of(7, *(("a", number) for number in range(WRITTEN_PER_TURN_MAX + 1))))
    assert (len(queue.take(0, LEADERS).here), queue.has_more) == (WRITTEN_PER_TURN_MAX, True)
    assert (len(queue.take(0, LEADERS).here), queue.has_more) == (1, False)


# Again


def test_txn_t32_who_does_not_take_it_is_asked_less_and_less_often() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    now, waits = 0.0, []
    for _ in range(1100):
        (request,) = sent(queue, now)
        queue.answered(request, {7: {A: ErrorCode.NOT_ENOUGH_REPLICAS}}, now)
        again = queue.next_s()
        assert again is not None
        waits.append(round(again - now, 6))
        now = again
    assert waits[:4] == [RETRY_S, 2 * RETRY_S, 4 * RETRY_S, 8 * RETRY_S]
    assert set(waits[4:]) == {RETRY_MAX_S}


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_txn_t32_a_partition_that_can_have_no_marker_is_done(code: ErrorCode) -> None:
    queue = MarkerQueue(HERE)
    marker = marker_of(7, A)
    queue.add(marker)
    (request,) = sent(queue)
    assert queue.answered(request, {7: {A: code}}, 0).done == {marker: [A]}
    assert len(queue) == 0


def test_an_error_that_no_leader_should_have_is_named_once() -> None:
    queue = MarkerQueue(HERE)
    marker = marker_of(7, A, C)
    queue.add(marker)
    for now in (0, 1):
        (request,) = sent(queue, now)
        codes = {A: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, C: ErrorCode.REQUEST_TIMED_OUT}
        settled = queue.answered(request, {7: codes}, now)
        assert settled.unforeseen == ({} if now else {marker: ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
    assert len(queue) == 2


def test_txn_t33_what_was_written_beside_a_refusal_counts() -> None:
    queue = MarkerQueue(HERE)
    marker = marker_of(7, A, B, C)
    queue.add(marker)
    at_1, at_2 = sorted(sent(queue), key=lambda request: request.broker_id)
    settled = queue.answered(at_1, {7: {A: NONE, C: ErrorCode.INVALID_PRODUCER_EPOCH}}, 0)
    assert (settled.done, settled.refused, len(queue)) == ({marker: [A]}, [marker], 0)
    assert marker not in queue
    assert queue.answered(at_2, {7: {B: NONE}}, 0) == NOTHING


# The metadata


def test_what_waits_for_a_broker_goes_to_another_one_that_leads_now() -> None:
    queue = MarkerQueue(HERE)
    queue.add(marker_of(7, A))
    (first,) = sent(queue)
    queue.add(marker_of(8, A))
    assert sent(queue) == []
    moved = Leaders(a=2)
    assert sent(queue, 0, moved) == [], "only a change of the metadata has it looked up again"
    queue.metadata_changed()
    assert plan(sent(queue, 0, moved)) == {2: {8: {A}}}
    queue.answered(first, {7: {A: NONE}}, 0)
    assert sent(queue, 0, moved) == []


class CountedLeaders(Leaders):
    looked_up = 0

    def leader(self, partition: TopicPartition) -> int | None:
        self.looked_up += 1
        return super().leader(partition)


def test_what_waits_for_an_answer_costs_nothing_meanwhile() -> None:
    queue, leaders = MarkerQueue(HERE), CountedLeaders(a=1, b=None)
    queue.add(marker_of(7, *(("a", number) for number in range(2000))))
    queue.add(marker_of(8, *(("b", number) for number in range(2000))))
    sent(queue, 0, leaders)
    assert leaders.looked_up == 4000
    queue.add(marker_of(9, A))
    sent(queue, 0, leaders)
    assert leaders.looked_up == 4001


def test_a_turn_looks_up_so_many_leaders() -> None:
    queue, leaders = MarkerQueue(HERE), CountedLeaders(a=None)
    queue.add(marker_of(7, *(("a", number) for number in range(ROUTED_PER_TURN_MAX + 1))))
    sent(queue, 0, leaders)
    assert (leaders.looked_up, queue.has_more) == (ROUTED_PER_TURN_MAX, True)
    sent(queue, 0, leaders)
    assert (leaders.looked_up, queue.has_more) == (ROUTED_PER_TURN_MAX + 1, False)
