"""What brokers are asked and answer is read from the bytes, sessions included, however they are cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from strandline.histories.exchanges import (
    END_TXN,
    FETCH,
    HEARTBEAT,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    AskedPosition,
    BrokerExchange,
    CoordinatorExchange,
    PartitionAnswer,
)
from strandline.histories.wire import QuorumMessage, Wiretap
from strandline.ids import Uuid
from strandline.records.batch import BatchBuilder
from strandline.sim.pipe import Pipe
from strandline.wire import fetch, messages
from strandline.wire.fetch import FetchedPartition
from strandline.wire.headers import request_header

CONTROLLER_PORT, BROKER_PORT = 9093, 9092
TOPIC = Uuid(b"t" * 16)
VERSION = 17


class Line:
    """One connection from n2 to the broker n1."""

    def __init__(self) -> None:
        self.now = 1.0
        self.seen: list[BrokerExchange] = []
        self.of_groups: list[tuple[CoordinatorExchange, bool]] = []
        """Each with whether it was answered."""
        self.of_transactions: list[tuple[CoordinatorExchange, bool]] = []
        self._tap = Wiretap(
            {"n1": 1, "n2": 2},
            CONTROLLER_PORT,
            self._report,
            self._hear_group,
            on_transaction_exchange=self._hear_transaction,
        )
        self.positions = self._tap.fetches.last
        server = SimpleNamespace(get_extra_info=lambda name: ("n1", BROKER_PORT))
        network = SimpleNamespace(loop=SimpleNamespace(time=lambda: self.now))
        self.client = object()
        there = {"number": 0, "source": "n2", "target": "n1", "reader": server, "writer": self.client}
        back = {"number": 1, "source": "n1", "target": "n2", "reader": None, "writer": server}
        self._there = cast(Pipe, SimpleNamespace(network=network, **there))
        self._back = cast(Pipe, SimpleNamespace(network=network, **back))

    def _report(self, sent: QuorumMessage) -> None:
        assert sent.source == 1
        assert sent.exchange is not None
        self.seen.append(sent.exchange)

    def _hear_group(self, exchange: CoordinatorExchange) -> None:
        self.of_groups.append((exchange, exchange.answered_at is not None))

    def _hear_transaction(self, exchange: CoordinatorExchange) -> None:
        self.of_transactions.append((exchange, exchange.answered_at is not None))

    def ask(self, api_key: int, version: int, body: bytes, cut: int = 0) -> None:
        frame = request_header(api_key, version, 5, "n2") + body
        data = len(frame).to_bytes(4, "big") + frame
        if cut:
            self._tap(self._there, data[:cut])
        self._tap(self._there, data[cut:])

    def answer(self, body: bytes, *, is_flexible: bool = True) -> BrokerExchange:
        self.answer_bytes(body, is_flexible=is_flexible)
        return self.seen[-1]

    def answer_bytes(self, body: bytes, *, is_flexible: bool = True) -> None:
        frame = (5).to_bytes(4, "big") + b"\0" * is_flexible + body
        self._tap(self._back, len(frame).to_bytes(4, "big") + frame)

    def fetch(self, session: tuple[int, int], forgotten: tuple[int, ...] = (), **offsets: int) -> None:
        """Partitions by names such as p0, each with the offset that is asked for."""
        Fetch = messages.request(FETCH)
        partitions: list[Any] = [
            Fetch.FetchPartition(
                partition=int(name[1:]),
                current_leader_epoch=3,
                fetch_offset=offset,
                last_fetched_epoch=2,
                partition_max_bytes=1,
            )
            for name, offset in offsets.items()
        ]
        message = Fetch(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=100,
            session_id=session[0],
            session_epoch=session[1],
            topics=[Fetch.FetchTopic(topic_id=TOPIC, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[Fetch.ForgottenTopic(topic_id=TOPIC, partitions=list(forgotten))]
            if forgotten
            else [],
            rack_id="",
            replica_state=Fetch.ReplicaState(replica_id=2, replica_epoch=7),
        )
        self.ask(FETCH, VERSION, messages.encode_request(FETCH, VERSION, message), cut=9)

    def fetched(self, *answers: FetchedPartition, session_id: int = 0, error_code: int = 0) -> BrokerExchange:
        topics = [(TOPIC, answers)] if answers else []
        return self.answer(
            b"".join(
                bytes(part)
                for part in fetch.write_response(VERSION, topics, session_id=session_id, error_code=error_code)
            )
        )


def test_a_fetch_is_shown_with_its_answer() -> None:
    line = Line()
    line.fetch((0, 0), p0=7, p1=8)
    assert not line.seen
    line.now = 2.0
    exchange = line.fetched(FetchedPartition(0, 0, records=b"r"), FetchedPartition(1, 74))
    assert (exchange.api_key, exchange.replica_id, exchange.asked_at, exchange.is_refused) == (FETCH, 2, 1.0, False)
    assert exchange.asked == {(TOPIC, 0): AskedPosition(3, 7), (TOPIC, 1): AskedPosition(3, 8)}
    assert exchange.answers() == {
        (TOPIC, 0): PartitionAnswer(0, has_data=True),
        (TOPIC, 1): PartitionAnswer(74, has_data=False),
    }


def test_a_divergence_is_told() -> None:
    line = Line()
    line.fetch((0, 0), p0=7)
    exchange = line.fetched(FetchedPartition(0, 0, diverging_epoch=(1, 4)))
    assert exchange.answers() == {(TOPIC, 0): PartitionAnswer(0, has_data=True, is_parted=True)}


def test_a_session_is_remembered() -> None:
    line = Line()
    line.fetch((0, 0), p0=7, p1=8)
    line.fetched(session_id=99)
    line.fetch((99, 1), p1=9)
    exchange = line.fetched(session_id=99)
    assert exchange.asked == {(TOPIC, 0): AskedPosition(3, 7), (TOPIC, 1): AskedPosition(3, 9)}
    assert exchange.named == {(TOPIC, 1)}
    line.fetch((99, 2), forgotten=(0,))
    assert line.fetched(session_id=99).asked == {(TOPIC, 1): AskedPosition(3, 9)}
    assert exchange.asked == {(TOPIC, 0): AskedPosition(3, 7), (TOPIC, 1): AskedPosition(3, 9)}


def test_a_fetch_may_be_refused_as_a_whole() -> None:
    line = Line()
    line.fetch((99, 1), p0=7)
    assert line.fetched(error_code=70).is_refused


def test_offsets_are_shown() -> None:
    line, version = Line(), 9
    Request, Response = messages.request(LIST_OFFSETS), messages.response(LIST_OFFSETS)
    asked = Request.ListOffsetsPartition(partition_index=0, current_leader_epoch=4, timestamp=-1)
    request = Request(replica_id=-1, topics=[Request.ListOffsetsTopic(name="t", partitions=[asked])])
    line.ask(LIST_OFFSETS, version, messages.encode_request(LIST_OFFSETS, version, request))
    answer = Response.ListOffsetsPartitionResponse(partition_index=0, offset=12)
    response = Response(topics=[Response.ListOffsetsTopicResponse(name="t", partitions=[answer])])
    exchange = line.answer(messages.encode_response(LIST_OFFSETS, version, response))
    assert exchange.asked == {("t", 0): AskedPosition(4, timestamp=-1)}
    assert exchange.answers() == {("t", 0): PartitionAnswer(0, has_data=True, offset=12)}


def test_where_a_batch_was_written_is_shown() -> None:
    line, version = Line(), 9
    Request, Response = messages.request(PRODUCE), messages.response(PRODUCE)
    line.ask(PRODUCE, version, messages.encode_request(PRODUCE, version, Request(acks=-1, timeout_ms=1)))
    answer = Response.PartitionProduceResponse(index=0, base_offset=12)
    response = Response(responses=[Response.TopicProduceResponse(name="t", partition_responses=[answer])])
    exchange = line.answer(messages.encode_response(PRODUCE, version, response))
    assert exchange.acks == -1
    assert exchange.answers() == {("t", 0): PartitionAnswer(0, has_data=True, offset=12)}


def test_what_a_follower_asked_for_last_is_known_before_it_is_answered() -> None:
    line = Line()
    line.fetch((0, 0), p0=8)
    assert line.positions == {(1, 2): {(TOPIC, 0): AskedPosition(3, 8)}}


def test_ends_of_epochs_are_shown() -> None:
    line, key, version = Line(), OFFSET_FOR_LEADER_EPOCH, 4
    Request, Response = messages.request(key), messages.response(key)
    asked = Request.OffsetForLeaderPartition(partition=0, current_leader_epoch=4, leader_epoch=2)
    request = Request(replica_id=-1, topics=[Request.OffsetForLeaderTopic(topic="t", partitions=[asked])])
    line.ask(key, version, messages.encode_request(key, version, request))
    answer = Response.EpochEndOffset(partition=0, error_code=75)
    response = Response(topics=[Response.OffsetForLeaderTopicResult(topic="t", partitions=[answer])])
    exchange = line.answer(messages.encode_response(key, version, response))
    assert exchange.asked == {("t", 0): AskedPosition(4)}
    assert exchange.answers() == {("t", 0): PartitionAnswer(75, has_data=False)}


def test_what_is_produced_is_kept_for_whoever_asks() -> None:
    line = Line()
    line.ask(PRODUCE, 9, b"\x00\xff\xffwhatever")
    assert not line.seen
    line.fetch((0, 0), p0=7)
    (request,) = line.fetched().produced
    assert request.endswith(b"whatever")


def test_what_is_asked_about_a_group_is_shown_at_once_and_again_with_its_answer() -> None:
    line = Line()
    request = messages.request(HEARTBEAT)(group_id="g", generation_id=3, member_id="m")
    line.ask(HEARTBEAT, 4, messages.request_family(HEARTBEAT).codec(4).encode(request), cut=9)
    [(asked, is_answered)] = line.of_groups
    assert not is_answered
    assert (asked.who, asked.broker_id, asked.request.group_id, asked.request.generation_id) == ("n2", 1, "g", 3)
    line.now = 2.5
    line.answer_bytes(messages.encode_response(HEARTBEAT, 4, messages.response(HEARTBEAT)(error_code=27)))
    assert line.of_groups[1:] == [(asked, True)]
    assert (asked.asked_at, asked.answered_at, asked.response.error_code) == (1.0, 2.5, 27)
    assert line.seen == []


def test_what_is_asked_about_a_transaction_is_shown_with_the_connection_that_it_came_on() -> None:
    line = Line()
    request = messages.request(END_TXN)(transactional_id="t", producer_id=7, producer_epoch=1, committed=True)
    line.ask(END_TXN, 5, messages.encode_request(END_TXN, 5, request), cut=9)
    [(asked, is_answered)] = line.of_transactions
    assert not is_answered
    assert (asked.who, asked.broker_id, asked.request.producer_id, asked.connection) == ("n2", 1, 7, line.client)
    line.answer_bytes(messages.encode_response(END_TXN, 5, messages.response(END_TXN)(producer_epoch=2)))
    assert line.of_transactions[1:] == [(asked, True)]
    assert asked.response.producer_epoch == 2
    assert line.of_groups == []
    assert line.seen == []


def test_a_produce_that_is_part_of_a_transaction_is_shown_before_it_is_answered_with_what_it_has() -> None:
    line, version = Line(), 12
    Request, Response = messages.request(PRODUCE), messages.response(PRODUCE)
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=1)
    batch = bytes(builder.build(producer_id=7, producer_epoch=1, base_sequence=0, transactional=True))
    topic = Request.TopicProduceData(name="t", partition_data=[Request.PartitionProduceData(index=3, records=batch)])
    for transactional_id in (None, "payments"):
        request = Request(transactional_id=transactional_id, acks=-1, timeout_ms=1, topic_data=[topic])
        line.ask(PRODUCE, version, messages.encode_request(PRODUCE, version, request))
    [(asked, is_answered)] = line.of_transactions
    assert not is_answered
    assert (asked.api_key, asked.request.transactional_id) == (PRODUCE, "payments")
    assert [(place, header.producer_id) for place, header in asked.request.batches()] == [(("t", 3), 7)]
    answer = Response.PartitionProduceResponse(index=3, base_offset=12)
    response = Response(responses=[Response.TopicProduceResponse(name="t", partition_responses=[answer])])
    exchange = line.answer(messages.encode_response(PRODUCE, version, response))
    assert exchange is asked.request
    assert exchange.answers()["t", 3].offset == 12
    assert exchange.acks == -1
