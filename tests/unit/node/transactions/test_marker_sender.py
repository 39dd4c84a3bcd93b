"""Markers on their way: to other brokers, to partitions of this node, and again where that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from strandline.api.transactions.marker_writing import MarkerWriter, WritableMarker
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.node.signals import MarkerSignals
from strandline.node.transactions.marker_sender import MarkerSender
from strandline.runtime.logging import JsonLogger
from strandline.transactions.markers import WRITTEN_PER_TURN_MAX, EndMarker
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages

from .other_brokers import AskedBroker, PlayedBrokers, image_of

NONE = ErrorCode.NONE


class PlayedPartitions(MarkerWriter):
    """Those of this node: what was to be written, and the answers."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, WritableMarker, Callable[[ErrorCode], None]]] = []

    def write(self, place: TopicPartition, marker: WritableMarker, done: Callable[[ErrorCode], None]) -> None:
        self.written.append((place, marker, done))


class Sending:
    def __init__(self) -> None:
        self.brokers = PlayedBrokers()
        self.here = PlayedPartitions()
        self.image = image_of(3, a=(1, 2, 3))
        self.lines: list[str] = []
        self.marked: list[tuple[str, list[TopicPartition]]] = []
        self.refused: list[str] = []
        signals = MarkerSignals()
        signals.marked.subscribe(self._marked)
        signals.refused.subscribe(lambda marker: self.refused.append(marker.transactional_id))
        self.sender = MarkerSender(
            1,
            lambda: self.image,
            self.brokers,
            self.here,
            lambda: 30.0,
            self.brokers.spawn,
            JsonLogger(self.lines.append, 1),
            signals.marked,
            signals.refused,
        )

    def apply(self, image: MetadataImage) -> None:
        self.image = image
        self.sender.image_applied(image)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_so():  # noqa: ASYNC110 - the loop has nothing to wait for but its own turns
                await asyncio.sleep(0)

    def _marked(self, marker: EndMarker, partitions: Collection[TopicPartition]) -> None:
        self.marked.append((marker.transactional_id, sorted(partitions)))

    def send(self, *partitions: TopicPartition, producer_id: int = 7) -> EndMarker:
        marker = EndMarker(
            transactional_id=f"t{producer_id}",
            producer=ProducerIdAndEpoch(producer_id, 1),
            commit=True,
            transaction_version=2,
            coordinator_partition=0,
            coordinator_epoch=5,
            partitions=frozenset(partitions),
        )
        self.sender.send(marker)
        return marker


@pytest.fixture
async def sending() -> Any:
    sending = Sending()
    yield sending
    sending.sender.close()
    for task in tuple(sending.brokers.tasks):
        task.cancel()


async def answer(asked: AskedBroker, code: ErrorCode = NONE) -> None:
    response = messages.response(27)
    reply = response()
    for marker in asked.message.markers:
        topics = [
            response.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    response.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        reply.markers.append(response.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    asked.answer.set_result(reply)
    for _ in range(3):
        await asyncio.sleep(0)


async def test_txn_t30_each_leader_gets_its_markers_and_this_node_writes_its_own(sending: Sending) -> None:
    sending.send(("a", 0), ("a", 1), ("a", 2))
    two, three = sorted(await sending.brokers.next(2), key=lambda asked: asked.broker_id)
    assert (two.broker_id, three.broker_id) == (2, 3)
    [marker] = two.message.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 1, 5)
    assert (marker.transaction_result, marker.transaction_version) == (True, 2)
    [(place, written, done)] = sending.here.written
    assert (place, written.producer) == (("a", 0), (7, 1))
    done(NONE)
    await answer(two)
    await answer(three)
    assert sorted(found for _, found in sending.marked) == [[("a", 0)], [("a", 1)], [("a", 2)]]
    assert len(sending.sender) == 0


async def test_what_comes_in_one_turn_goes_in_one_request(sending: Sending) -> None:
    for producer_id in (7, 8, 9):
        sending.send(("a", 1), producer_id=producer_id)
    [asked] = await sending.brokers.next()
    assert [marker.producer_id for marker in asked.message.markers] == [7, 8, 9]
    sending.send(("a", 1), producer_id=10)
    await asyncio.sleep(0)
    assert not sending.brokers.asked
    await answer(asked)
    [asked] = await sending.brokers.next()
    assert [marker.producer_id for marker in asked.message.markers] == [10]


async def test_txn_t32_a_lost_connection_is_tried_again_with_the_leader_of_then(sending: Sending) -> None:
    sending.send(("a", 1))
    [asked] = await sending.brokers.next()
    asked.refuse()
    sending.image = image_of(3, a=(1, 3, 3))
    [asked] = await sending.brokers.next()
    assert asked.broker_id == 3
    await answer(asked)
    assert sending.marked == [("t7", [("a", 1)])]


async def test_txn_t32_a_deleted_topic_is_done_when_the_image_says_so(sending: Sending) -> None:
    sending.image = image_of(1, a=(1, 2))
    sending.send(("a", 1))
    await asyncio.sleep(0)
    assert not sending.brokers.asked, "broker 2 is not registered"
    sending.apply(image_of(1))
    await asyncio.sleep(0)
    assert sending.marked == [("t7", [("a", 1)])]


async def test_txn_t33_a_refused_marker_is_reported_and_not_sent_again(sending: Sending) -> None:
    sending.send(("a", 1), ("a", 2))
    two, three = sorted(await sending.brokers.next(2), key=lambda asked: asked.broker_id)
    await answer(two, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    await answer(three, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert sending.refused == ["t7"]
    assert (len(sending.sender), sending.marked) == (0, [])
    assert any("a marker was refused" in line for line in sending.lines)


async def test_txn_t31_what_is_forgotten_is_neither_sent_nor_reported(sending: Sending) -> None:
    sending.send(("a", 1))
    [asked] = await sending.brokers.next()
    sending.send(("a", 2), producer_id=8)
    sending.sender.forget(0, 5)
    await answer(asked)
    assert (sending.marked, sending.brokers.asked) == ([], [])


async def test_txn_t31_a_write_that_ends_the_coordinator_forgets_the_others(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(place: TopicPartition, marker: WritableMarker, done: Callable[[ErrorCode], None]) -> None:
        written.append(place)
        sending.sender.forget(0, 5)
        done(ErrorCode.KAFKA_STORAGE_ERROR)

    written: list[TopicPartition] = []
    monkeypatch.setattr(sending.here, "write", write)
    sending.send(("a", 0))
    sending.send(("a", 0), producer_id=8)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (failures, sending.marked, len(sending.sender)) == ([], [], 0)
    assert written == [("a", 0)], "the other marker is no longer to be written"


async def test_txn_t32_a_topic_that_is_deleted_while_its_marker_is_under_way(sending: Sending) -> None:
    sending.send(("a", 1))
    [asked] = await sending.brokers.next()
    sending.apply(image_of(3))
    await answer(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    await sending.until(lambda: bool(sending.marked))
    assert (sending.marked, len(sending.sender)) == ([("t7", [("a", 1)])], 0), "no other image came"


async def test_what_is_no_answer_does_not_hold_the_broker(sending: Sending) -> None:
    sending.send(("a", 1))
    [asked] = await sending.brokers.next()
    asked.answer.set_exception(ValueError("nothing that a connection raises"))
    [asked] = await sending.brokers.next()
    await answer(asked)
    assert sending.marked == [("t7", [("a", 1)])]


async def test_a_partition_that_stands_still_holds_up_no_other_of_this_node(sending: Sending) -> None:
    sending.image = image_of(3, a=(1, 2, 3), b=(1,))
    sending.send(("a", 0), ("b", 0))
    await sending.until(lambda: len(sending.here.written) == 2)
    [_, (place, _, done)] = sending.here.written
    done(NONE)
    assert (place, sending.marked) == (("b", 0), [("t7", [("b", 0)])])
    sending.send(("b", 0), producer_id=8)
    await sending.until(lambda: len(sending.here.written) == 3)
    sending.here.written[2][2](NONE)
    assert sending.marked[1:] == [("t8", [("b", 0)])]
    assert len(sending.sender) == 1


async def test_more_than_a_turn_has_time_for_is_written_in_the_next_ones(sending: Sending) -> None:
    sending.image = image_of(1, a=(1,) * (2 * WRITTEN_PER_TURN_MAX + 1))
    sending.send(*(("a", index) for index in range(2 * WRITTEN_PER_TURN_MAX + 1)))
    await asyncio.sleep(0)
    assert len(sending.here.written) == WRITTEN_PER_TURN_MAX
    await sending.until(lambda: len(sending.here.written) == 2 * WRITTEN_PER_TURN_MAX + 1)


async def test_an_image_of_other_things_has_no_leader_looked_up(sending: Sending) -> None:
    sending.apply(sending.image)
    sending.send(("a", 1))
    [asked] = await sending.brokers.next()
    sending.send(("a", 1), producer_id=8)
    await asyncio.sleep(0)
    before, sending.image = sending.image, image_of(3, a=(1, 3, 3))
    sending.sender.image_applied(replace(before, next_producer_id=1000))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not sending.brokers.asked
    sending.apply(sending.image)
    [moved] = await sending.brokers.next()
    assert (moved.broker_id, [marker.producer_id for marker in moved.message.markers]) == (3, [8])
    await answer(asked)
    await answer(moved)
    assert sending.marked == [("t7", [("a", 1)]), ("t8", [("a", 1)])]


async def test_an_error_that_no_leader_should_have_is_logged_once(sending: Sending) -> None:
    sending.send(("a", 1))
    for _ in range(2):
        [asked] = await sending.brokers.next()
        await answer(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    [line] = [line for line in sending.lines if "can't be written" in line]
    assert "CLUSTER_AUTHORIZATION_FAILED" in line
