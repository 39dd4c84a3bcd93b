"""Producing through every kind of trouble: each record once, in order, and told what became of it."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import random

import pytest

from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.batches import ProducerIdentity, RecordDelivery, Wakeup
from strandline.client.core.producer import ProduceCall, ProducerCore
from strandline.client.errors import BufferExhausted, ConnectionLost, RecordTooLarge, TimedOut
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import decode
from strandline.records.header import read_header

from .broker import PartitionLog, batches_of, cluster, metadata, produced

BACKOFF = Backoff(100, 1000)


def never() -> Wakeup:
    raise AssertionError("no delivery is awaited here")


class Story:
    """A producer, its clock, and one connection per node that can be cut."""

    def __init__(self, leaders=None, seed=0, **config) -> None:
        self.cluster = cluster(leaders or {0: (1, 0)})
        self.core = ProducerCore(ProducerConfig(**config), self.cluster, BACKOFF, random.Random(seed))
        self.now = 0.0
        self.links: dict[int, object | None] = {1: "one", 2: "two"}
        self.ids = 0

    def send(self, value: bytes = b"v", partition: int | None = 0, key: bytes | None = None) -> RecordDelivery:
        delivery = RecordDelivery(never, 7)
        self.core.append("t", key, value, (), partition, delivery, self.now)
        return delivery

    def drain(self) -> list[ProduceCall]:
        """Everything that is due, with a producer id if one is wanted."""
        calls = []
        while True:
            more = self.core.drain(self.now, self.links.get)
            if self.core.wants_identity:
                self.ids += 1
                self.core.identified(ProducerIdentity(self.ids, 0))
                more += self.core.drain(self.now, self.links.get)
            if not more:
                return calls
            calls += more

    def answer(self, call: ProduceCall, code: int = 0, offset: int = 0, **fields) -> None:
        partitions = {batch.partition: (code, offset) for batch in call.batches}
        self.core.answered(call, produced(partitions, **fields), self.now)


def prove(story: Story) -> None:
    """Get the first batch acknowledged: later ones may then be in flight together."""
    story.send(b"first")
    (call,) = story.drain()
    story.answer(call)


def test_a_batch_lingers_and_is_acknowledged_with_offsets():
    story = Story(linger_ms=5)
    deliveries = [story.send(b"a"), story.send(b"b")]
    assert story.drain() == []
    assert story.core.wakeup(story.now) == pytest.approx(0.005)
    story.now = 0.006
    (call,) = story.drain()
    assert call.node_id == 1
    story.answer(call, offset=40)
    assert [delivery.result() for delivery in deliveries] == [("t", 0, 40, 7), ("t", 0, 41, 7)]
    assert not story.core.has_unfinished or story.drain() == []
    assert story.core.buffered_bytes == 0


def test_a_reply_that_was_lost_is_asked_for_again_with_the_same_bytes():
    story = Story(linger_ms=0)
    delivery = story.send()
    (first,) = story.drain()
    story.links[1] = None
    story.core.lost(first, ConnectionLost("cut"), story.now)
    assert "t" in story.core.wants_topics
    story.now = 0.2
    assert story.drain() == []
    assert story.core.wants_nodes == {1}
    story.links[1] = "a new connection"
    (second,) = story.drain()
    assert batches_of(second.message) == batches_of(first.message)
    story.answer(second, offset=3)
    assert delivery.result().offset == 3


def test_the_first_batch_of_an_identity_goes_alone_and_then_five_may_fly():
    story = Story(linger_ms=0, batch_size=1)
    deliveries = [story.send(b"%d" % i) for i in range(9)]
    (first,) = story.drain()
    assert story.drain() == []
    story.answer(first)
    calls = story.drain()
    assert len(calls) == 5
    assert [read_header(batches_of(call.message)[0][1]).base_sequence for call in calls] == [1, 2, 3, 4, 5]
    assert deliveries[0].done
    assert not deliveries[1].done


def test_batches_behind_a_failed_one_wait_for_it_and_keep_their_sequences():
    story = Story(linger_ms=0, batch_size=1)
    prove(story)
    deliveries = [story.send(b"%d" % i) for i in range(3)]
    one, two, three = story.drain()
    story.answer(one, ErrorCode.NOT_ENOUGH_REPLICAS)
    story.answer(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    story.answer(three, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert story.drain() == [], "it backs off"
    story.now = 0.3
    again = story.drain()
    assert [batches_of(call.message) for call in again] == [batches_of(call.message) for call in (one, two, three)]
    for offset, call in enumerate(again):
        story.answer(call, offset=offset)
    assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]
    assert story.ids == 1


def test_a_retried_batch_does_not_pass_one_that_is_in_flight_elsewhere():
    story = Story(linger_ms=0, batch_size=1)
    prove(story)
    story.send(b"1"), story.send(b"2"), story.send(b"3")
    one, two, three = story.drain()
    story.answer(two, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    story.cluster.update(metadata({0: (2, 1)}))
    story.now = 1
    assert story.drain() == [], "batch 1 is still with the old leader, so batch 2 waits"
    story.answer(three, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    story.answer(one, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    story.now = 2
    assert [(call.node_id, call.batches[0].number) for call in story.drain()] == [(2, (1,)), (2, (2,)), (2, (3,))]


def test_a_new_batch_follows_others_only_on_their_connection():
    story = Story(linger_ms=0, batch_size=1)
    prove(story)
    story.send(b"1")
    (one,) = story.drain()
    story.cluster.update(metadata({0: (2, 1)}))
    story.send(b"2")
    assert story.drain() == [], "the new leader may not have batch 1 yet"
    story.answer(one)
    assert [call.node_id for call in story.drain()] == [2]


def test_a_refused_batch_frees_its_sequence_if_nothing_followed_it():
    story = Story(linger_ms=0)
    prove(story)
    failed = story.send(b"bad")
    (call,) = story.drain()
    story.answer(call, ErrorCode.INVALID_RECORD, error_message="bad record")
    with pytest.raises(KafkaError, match="bad record"):
        failed.result()
    story.send(b"good")
    (call,) = story.drain()
    assert read_header(batches_of(call.message)[0][1]).base_sequence == 1
    assert story.ids == 1


def test_batches_behind_a_refused_one_move_to_a_new_producer_id():
    story = Story(linger_ms=0, batch_size=1)
    prove(story)
    story.send(b"bad")
    story.send(b"good")
    bad, good = story.drain()
    story.answer(bad, ErrorCode.INVALID_RECORD)
    assert story.drain() == []
    story.answer(good, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    story.now = 1
    (again,) = story.drain()
    header = read_header(batches_of(again.message)[0][1])
    assert (header.producer_id, header.base_sequence) == (2, 0)


def test_a_batch_that_may_be_in_the_log_never_gets_another_sequence():
    story = Story(linger_ms=0)
    prove(story)
    delivery = story.send(b"maybe")
    (call,) = story.drain()
    story.core.lost(call, ConnectionLost("cut"), 0.0)
    story.now = 1
    (call,) = story.drain()
    story.answer(call, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        delivery.result()
    story.send(b"next")
    story.now = 2
    (call,) = story.drain()
    assert read_header(batches_of(call.message)[0][1]).producer_id == 2


def test_a_batch_that_the_broker_finds_too_large_is_split():
    story = Story(linger_ms=0)
    deliveries = [story.send(b"%d" % i) for i in range(5)]
    (call,) = story.drain()
    story.answer(call, ErrorCode.MESSAGE_TOO_LARGE)
    values, sequences, offset = [], [], 0
    while calls := story.drain():
        for half in calls:
            ((_, data),) = batches_of(half.message)
            records = [record.value for record in decode(data)]
            values += records
            sequences.append(read_header(data).base_sequence)
            story.answer(half, offset=offset)
            offset += len(records)
    assert values == [b"0", b"1", b"2", b"3", b"4"]
    assert sequences == [0, 2]
    assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2, 3, 4]
    assert story.core.buffered_bytes == 0


def test_a_record_that_is_too_large_alone_fails():
    story = Story(linger_ms=0)
    delivery = story.send()
    (call,) = story.drain()
    story.answer(call, ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        delivery.result()
    with pytest.raises(RecordTooLarge, match="max_request_size"):
        story.send(bytes(2_000_000))


def test_time_runs_out_in_the_queue_and_for_want_of_metadata():
    story = Story(linger_ms=0, delivery_timeout_ms=1000)
    story.links[1] = None
    queued = story.send()
    unknown = RecordDelivery(never, 0)
    story.core.append("other", None, b"v", (), None, unknown, 0.0)
    assert story.drain() == []
    assert story.core.wakeup(0.5) == pytest.approx(1.0), (
        "what is due but has no connection does not make the sender spin"
    )
    story.now = 1.0
    story.drain()
    for delivery in (queued, unknown):
        with pytest.raises(TimedOut, match="within 1000 ms"):
            delivery.result()
    assert story.core.buffered_bytes == 0


def test_the_buffer_is_bounded():
    story = Story(buffer_memory=1000)
    for _ in range(11):
        story.send(bytes(50))
    with pytest.raises(BufferExhausted, match="1000 bytes"):
        story.send(bytes(50))
    assert story.core.buffered_bytes <= 1000


def test_records_of_an_unknown_topic_wait_in_order():
    story = Story(linger_ms=0)
    deliveries = []
    for i in range(3):
        deliveries.append(RecordDelivery(never, 0))
        story.core.append("new", None, b"%d" % i, (), None, deliveries[-1], 0.0)
    assert story.core.wants_topics == {"new"}
    story.cluster.update(metadata({0: (1, 0)}, topic="new"))
    story.core.metadata_changed(0.0)
    (call,) = story.drain()
    assert [record.value for record in decode(batches_of(call.message)[0][1])] == [b"0", b"1", b"2"]


def test_a_key_always_finds_its_partition_and_no_key_stays_for_a_batch():
    story = Story(dict.fromkeys(range(8), (1, 0)), batch_size=500, linger_ms=0)
    for _ in range(3):
        story.send(partition=None, key=b"key")
    (call,) = story.drain()
    assert [batch.records_count for batch in call.batches] == [3]
    story.answer(call)
    for _ in range(4):
        story.send(bytes(60), partition=None)
    (call,) = story.drain()
    assert [batch.records_count for batch in call.batches] == [4]


def test_a_broker_that_names_the_new_leader_is_believed_at_once():
    story = Story(linger_ms=0)
    story.send()
    (call,) = story.drain()
    Leader = type(produced({0: (0, 0)}).responses[0].partition_responses[0].current_leader)
    story.answer(call, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=Leader(leader_id=2, leader_epoch=5))
    assert [again.node_id for again in story.drain()] == [2]


def test_acks_0_is_done_when_it_is_written():
    story = Story(linger_ms=0, acks=0)
    delivery = story.send()
    (call,) = story.drain()
    story.core.sent_without_reply(call)
    assert delivery.result().offset == -1
    assert read_header(batches_of(call.message)[0][1]).producer_id == -1


BEFORE_APPEND = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
AFTER_APPEND = (
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_the_log_has_each_record_once_and_in_order(seed):
    """One log behind two leaders; requests wait on connections that may be cut before or after the append."""
    chance = random.Random(seed)
    story = Story({0: (1, 0)}, seed, linger_ms=0, batch_size=chance.choice((1, 60, 200)), delivery_timeout_ms=20_000)
    log, leader, epoch, connections = PartitionLog(), 1, 0, 0
    wires: dict[object, list[ProduceCall]] = {}
    deliveries: list[RecordDelivery] = []
    with_refusals = seed % 3 == 0
    with_ghosts = seed % 2 == 0
    ghosts: list[ProduceCall] = []

    def connect() -> None:
        nonlocal connections
        for node_id in (1, 2):
            if story.links[node_id] is None:
                connections += 1
                story.links[node_id] = f"connection {connections}"

    def serve(link: object, trouble: float) -> None:
        """The broker handles the first request of a connection; its answer may be lost with all behind it."""
        call = wires[link].pop(0)
        ((_, batch),) = batches_of(call.message)
        code, offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        if call.node_id == leader:
            roll = chance.random()
            if roll < trouble / 3:
                code = chance.choice((*BEFORE_APPEND, ErrorCode.INVALID_RECORD) if with_refusals else BEFORE_APPEND)
            else:
                code, offset = log.append(batch)
                if code is ErrorCode.NONE and roll < 2 * trouble / 3:
                    code, offset = chance.choice(AFTER_APPEND), -1
        if chance.random() < trouble / 4:
            cut(link, call)
        else:
            story.answer(call, code, offset)

    def cut(link: object, *lost: ProduceCall) -> None:
        waiting = [*lost, *wires.pop(link, [])]
        # What was written but not read by the broker may still be appended, now or after we have come back.
        if with_ghosts and chance.random() < 0.5:
            ghosts.extend(waiting[len(lost) :])
        for call in [] if ghosts else waiting[len(lost) :]:
            if call.node_id == leader and chance.random() < 0.5:
                log.append(batches_of(call.message)[0][1])
            else:
                break
        for node_id, open_link in story.links.items():
            if open_link == link:
                story.links[node_id] = None
        for call in waiting:
            story.core.lost(call, ConnectionLost("cut"), story.now)

    for step in range(400):
        trouble = 0.3 if step < 250 else 0.0
        story.now += chance.random() * 0.2
        if step < 200:
            deliveries += [story.send(b"%d" % (len(deliveries) + i)) for i in range(chance.randrange(3))]
        connect()
        for call in story.drain():
            wires.setdefault(call.link, []).append(call)
        if chance.random() < trouble / 10:
            leader, epoch = 3 - leader, epoch + 1
        story.cluster.update(metadata({0: (leader, epoch)}))
        if ghosts and chance.random() < 0.5:
            log.append(batches_of(ghosts.pop(0).message)[0][1])
        busy = [link for link, calls in wires.items() if calls]
        if busy:
            serve(chance.choice(busy), trouble)
    story.now += 30
    for _ in range(100):
        connect()
        for call in story.drain():
            wires.setdefault(call.link, []).append(call)
        for link in [link for link, calls in wires.items() if calls]:
            serve(link, 0.0)

    assert all(delivery.done for delivery in deliveries)
    values = [int(value) for value in log.values if value is not None]
    assert len(values) == len(set(values)), "each once"
    if not with_ghosts:
        assert values == sorted(values), "in order"
    acknowledged = []
    for number, delivery in enumerate(deliveries):
        try:
            offset = delivery.result().offset
        except KafkaError:
            continue
        acknowledged.append(number)
        assert values[offset] == number
    in_log = [value for value in values if value in set(acknowledged)]
    assert in_log == acknowledged, "all that was acknowledged, in order"
    if not with_refusals:
        assert len(acknowledged) > len(deliveries) * 0.9
    assert story.core.buffered_bytes == 0
    assert not story.core.has_unfinished or story.drain() == []
