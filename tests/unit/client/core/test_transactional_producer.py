"""The records of a transactional producer: under which pair they leave, and when they do not."""

from __future__ import annotations

import random

import pytest

from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.batches import RecordDelivery, Wakeup
from strandline.client.core.producer import ProduceCall, ProducerCore
from strandline.client.core.transaction import TransactionCore
from strandline.client.core.transactional_state import TransactionalState
from strandline.client.core.versions import FinalizedFeatures
from strandline.client.core.whole_batches import Ledger
from strandline.client.errors import ConnectionLost, RecordTooLarge, TransactionAbortable, TransactionAborted
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import BatchBuilder
from strandline.records.header import BatchHeader, ensure_valid
from strandline.records.ready import ReadyBatch
from strandline.wire import messages

from .broker import batches_of, cluster, metadata, produced


def never() -> Wakeup:
    raise AssertionError("no delivery is awaited here")


class Story:
    """A producer whose coordinator takes everything: each end and each InitProducerId gives the next epoch."""

    def __init__(self, level: int = 2, batch_size: int = 16_384) -> None:
        self.cluster = cluster({0: (1, 0), 1: (1, 0)})
        self.cluster.learn_features(FinalizedFeatures(1, {"transaction.version": level}))
        made = ProducerConfig(transactional_id="tid", linger_ms=0, batch_size=batch_size)
        self.core = ProducerCore(made, self.cluster, Backoff(100, 1000), random.Random(0))
        assert self.core.transaction is not None
        self.transaction: TransactionCore = self.core.transaction
        self.now = 0.0
        self.epoch = -1
        self.asked: list[int] = []
        self.transaction.initialise()
        self.settle()

    def settle(self) -> None:
        """Everything that the coordinator is asked now."""
        while question := self.transaction.question(self.now, is_quiet=not self.core.has_unfinished):
            self.asked.append(question.api_key)
            match question.api_key:
                case 22:
                    self.epoch += 1
                    answer = messages.response(22)(producer_id=7, producer_epoch=self.epoch)
                    self.transaction.answered(answer, self.now)
                case 24:
                    self.transaction.answered(messages.response(24)(), self.now)
                case 26 if question.version_max == 5:
                    self.epoch += 1
                    answer26 = messages.response(26)(producer_id=7, producer_epoch=self.epoch)
                    self.transaction.answered(answer26, self.now)
                case 26:
                    self.transaction.answered(messages.response(26)(), self.now)

    def send(self, value: bytes = b"v", partition: int = 0, topic: str = "t") -> RecordDelivery:
        delivery = RecordDelivery(never, 7)
        self.core.append(topic, None, value, (), partition, delivery, self.now)
        return delivery

    def drain(self) -> list[ProduceCall]:
        calls: list[ProduceCall] = []
        while more := self.core.drain(self.now, {1: "link"}.get):
            calls += more
        return calls

    def call(self) -> ProduceCall:
        (call,) = self.drain()
        return call

    def answer(self, call: ProduceCall, code: ErrorCode = ErrorCode.NONE) -> None:
        self.core.answered(call, produced({batch.partition: (code, 0) for batch in call.batches}), self.now)

    def end(self) -> None:
        """What is in flight is answered, nothing more leaves, and the transaction ends."""
        assert self.drain() == []
        self.settle()
        assert self.transaction.state is TransactionalState.READY


def headers(call: ProduceCall) -> list[BatchHeader]:
    return [ensure_valid(data) for _, data in batches_of(call.message)]


def error_of(delivery: RecordDelivery) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        delivery.result()
    return caught.value


def test_txn_tc3_records_carry_the_id_and_the_pair_and_each_end_begins_the_sequences_anew() -> None:
    story = Story()
    for epoch in (0, 1):
        story.transaction.begin()
        story.send()
        call = story.call()
        assert call.message.transactional_id == "tid"
        assert call.message.acks == -1
        assert call.version_max is None
        (header,) = headers(call)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, epoch, 0)
        assert header.is_transactional
        story.answer(call)
        story.send()
        call = story.call()
        assert headers(call)[0].base_sequence == 1
        story.transaction.commit()
        story.settle()
        assert story.asked.count(26) == epoch, "a record is on its way"
        story.answer(call)
        story.end()
    assert story.asked == [22, 26, 26]


def test_txn_tc2_below_version_2_a_batch_waits_for_its_partition_and_sequences_go_on() -> None:
    story = Story(level=0)
    for sequence in (0, 1):
        story.transaction.begin()
        story.send()
        assert story.drain() == []
        story.settle()
        call = story.call()
        assert call.version_max == 11
        (header,) = headers(call)
        assert (header.producer_epoch, header.base_sequence) == (0, sequence)
        story.answer(call)
        story.transaction.commit()
        story.end()
    assert story.asked == [22, 24, 26, 24, 26]


def test_nothing_is_sent_outside_a_transaction() -> None:
    story = Story()
    with pytest.raises(KafkaError, match="begin_transaction comes first"):
        story.send()
    assert story.core.buffered_bytes == 0


def test_a_commit_does_not_wait_for_more_records() -> None:
    story = Story()
    object.__setattr__(story.core, "config", ProducerConfig(transactional_id="tid", linger_ms=10_000))
    story.transaction.begin()
    story.send()
    assert story.drain() == []
    story.transaction.commit()
    story.answer(story.call())
    story.end()


def test_an_abort_waits_for_what_is_in_flight_and_sends_nothing_more() -> None:
    story = Story(batch_size=1)
    story.transaction.begin()
    first, second = story.send(b"1"), story.send(b"2")
    unknown = story.send(topic="new")
    call = story.call()
    story.transaction.abort()
    assert story.drain() == []
    assert isinstance(error_of(second), TransactionAborted)
    assert isinstance(error_of(unknown), TransactionAborted)
    story.settle()
    assert story.asked == [22]
    story.core.lost(call, ConnectionLost("cut"), story.now)
    story.end()
    assert isinstance(error_of(first), TransactionAborted)
    assert story.core.buffered_bytes == 0
    story.transaction.begin()
    story.send()
    (header,) = headers(story.call())
    assert (header.producer_epoch, header.base_sequence) == (1, 0)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(
    "code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNKNOWN_PRODUCER_ID]
)
def test_txn_tc5_nothing_goes_on_under_another_producer_id_inside_a_transaction(level: int, code: ErrorCode) -> None:
    """TXN-TC5: what was acknowledged before would be missing, or what comes after."""
    story = Story(level, batch_size=1)
    story.transaction.begin()
    deliveries = [story.send(b"%d" % i) for i in range(3)]
    story.settle()
    story.answer(story.call())
    second, third = story.drain()
    story.answer(second, code)
    story.now = 1.0
    assert story.drain() == []
    assert not story.core.wants_identity
    assert error_of(deliveries[1]).code is code
    with pytest.raises(TransactionAbortable, match=code.name):
        story.send()
    with pytest.raises(TransactionAbortable, match=code.name):
        story.transaction.commit()
    story.transaction.abort()
    story.settle()
    assert 26 not in story.asked, "the third is in flight"
    story.answer(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    story.end()
    assert isinstance(error_of(deliveries[2]), KafkaError)
    story.transaction.begin()
    story.send()
    story.settle()
    (header,) = headers(story.call())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)


def test_a_batch_that_is_refused_because_of_one_before_it_is_sent_again() -> None:
    story = Story(batch_size=1)
    story.transaction.begin()
    story.send(b"0")
    story.answer(story.call())
    deliveries = [story.send(b"1"), story.send(b"2")]
    first, second = story.drain()
    story.answer(first, ErrorCode.CONCURRENT_TRANSACTIONS)
    story.answer(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    story.now = 1.0
    again = story.drain()
    assert [batches_of(call.message) for call in again] == [batches_of(call.message) for call in (first, second)]
    for call in again:
        story.answer(call)
    assert all(delivery.done for delivery in deliveries)
    story.transaction.commit()
    story.end()


def test_txn_tc5_a_record_that_was_not_taken_or_found_no_place_spoils_the_transaction() -> None:
    story = Story()
    story.transaction.begin()
    with pytest.raises(RecordTooLarge):
        story.send(bytes(2_000_000))
    assert story.transaction.state is TransactionalState.ABORTABLE_ERROR

    story = Story()
    story.transaction.begin()
    lost = story.send(partition=9)
    assert error_of(lost).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert story.transaction.state is TransactionalState.ABORTABLE_ERROR

    story = Story()
    story.transaction.begin()
    story.send(topic="secret")
    story.cluster.update(metadata({}, topic="secret", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    story.core.metadata_changed(0.0)
    assert story.transaction.state is TransactionalState.ABORTABLE_ERROR


def test_txn_tc6_a_record_whose_time_is_over_spoils_the_transaction() -> None:
    """TXN-TC5, TXN-TC6."""
    story = Story()
    story.transaction.begin()
    delivery = story.send(topic="new")
    story.now = 60.0
    story.drain()
    assert error_of(delivery).code is ErrorCode.REQUEST_TIMED_OUT
    assert story.transaction.state is TransactionalState.ABORTABLE_ERROR


def test_the_next_pair_is_waited_for_before_the_next_transaction_writes() -> None:
    story = Story(level=0)
    story.transaction.begin()
    story.send()
    story.settle()
    story.answer(story.call())
    story.transaction.abort()
    question = story.transaction.question(0.0, is_quiet=not story.core.has_unfinished)
    assert question is None, "the queue is not swept yet"
    assert story.drain() == []
    assert story.transaction.question(0.0, is_quiet=not story.core.has_unfinished)
    story.transaction.answered(messages.response(26)(), 0.0)
    story.transaction.begin()
    story.send()
    assert story.drain() == []
    story.settle()
    (header,) = headers(story.call())
    assert (header.producer_epoch, header.base_sequence) == (1, 0)


def test_whole_batches_are_stamped_as_transactional() -> None:
    story = Story()
    story.transaction.begin()
    builder = BatchBuilder()
    builder.append(None, b"v", (), 0)
    ledger = Ledger()
    story.core.append_whole("t", 0, ReadyBatch(builder.build(), 1, 0), ledger, 0.0)
    call = story.call()
    (header,) = headers(call)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 0, True)
    story.answer(call)
    story.transaction.commit()
    story.end()
    with pytest.raises(KafkaError, match="begin_transaction comes first"):
        story.core.append_whole("t", 0, ReadyBatch(builder.build(), 1, 0), ledger, 0.0)
