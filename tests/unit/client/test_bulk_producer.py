"""Whole batches to a broker in a thread: in order, once, and the first failure told."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from strandline.client.blocking import Client, ClientConfig
from strandline.client.bulk_producer import BatchProducer
from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.errors import TimedOut
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import BatchBuilder
from strandline.records.ready import ReadyBatch
from strandline.wire import messages
from strandline.wire.headers import read_request_header

from .core.broker import TOPIC_ID, metadata
from .server import Broker, serving_beside

QUICK = ClientConfig(retry_backoff=Backoff(1, 5), reconnect_backoff=Backoff(1, 5))


def ready(*values: bytes) -> ReadyBatch:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, (), 7)
    return ReadyBatch(builder.build(), builder.records_count, builder.max_timestamp)


class Refusing(Broker):
    """Answers these codes to Produce first. Knows the topic only after so many questions."""

    def __init__(self, *codes: ErrorCode, unknown_times: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.codes = list(codes)
        self.unknown_times = unknown_times
        self.created = 0

    def metadata(self, request: Any) -> Any:
        if not request.topics:
            return super().metadata(request)
        self.created += request.allow_auto_topic_creation
        if self.unknown_times > 0:
            self.unknown_times -= 1
            answer = metadata({}, nodes=(1,), error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            answer.brokers[0].host, answer.brokers[0].port = self.host, self.port
            return answer
        return super().metadata(request)

    def produce(self, request: Any) -> Any:
        if not self.codes:
            return super().produce(request)
        R = messages.response(0)
        answer = R.PartitionProduceResponse(index=0, error_code=self.codes.pop(0), base_offset=-1)
        return R(responses=[R.TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[answer])])


def connect(broker: Broker) -> Client:
    return Client(f"127.0.0.1:{broker.port}", config=QUICK)


@pytest.mark.parametrize("value_bytes", [0, 200_000])
def test_batches_are_in_the_log_once_and_in_order_through_lost_replies(value_bytes: int):
    broker = Broker(lose_replies=(2, 5))
    with serving_beside(broker), connect(broker) as client, BatchProducer(client) as producer:
        assert producer.partitions_count("t") == 1
        for number in range(20):
            producer.send("t", 0, ready(b"%d" % number + bytes(value_bytes), b"x"))
        producer.flush()
        numbers = [value[:2].rstrip(b"\0") for value in broker.log.values[::2] if value is not None]
        assert numbers == [b"%d" % number for number in range(20)]
        written = producer.written()["t", 0]
        assert written[:3] == (0, 40, 40)
        assert written.bytes == sum(len(data) for data in map(bytes, set(map(bytes, broker.produced))))


def test_the_buffer_makes_the_caller_wait():
    broker = Broker()
    size = len(ready(bytes(10_000)).data)
    with serving_beside(broker), connect(broker) as client:
        with BatchProducer(client, ProducerConfig(buffer_memory=2 * size)) as producer:
            for sent in range(1, 20):
                producer.send("t", 0, ready(bytes(10_000)))
                assert sent - producer.written().get(("t", 0), (0, 0, 0))[2] <= 2
            producer.flush()
        assert len(broker.log.values) == 19


class Silent(Broker):
    """Answers no Produce, as acks=0 has it."""

    def reply(self, frame: bytes) -> bytes | None:
        answer = super().reply(frame)
        return b"" if read_request_header(frame).api_key == 0 else answer


def test_without_acks_what_was_flushed_has_arrived_and_the_buffer_is_no_larger():
    broker = Silent()
    size = len(ready(bytes(200_000)).data)
    with serving_beside(broker), connect(broker) as client:
        with BatchProducer(client, ProducerConfig(acks=0, buffer_memory=3 * size)) as producer:
            for sent in range(1, 40):
                producer.send("t", 0, ready(bytes(200_000)))
                assert sent - len(broker.produced) <= 3
            producer.flush()
            assert len(broker.produced) == 39
            assert producer.written()["t", 0].records_count == 39
            producer.send("t", 0, ready(bytes(200_000)))
        assert len(broker.produced) == 40


def test_elections_are_waited_out():
    codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
    broker = Refusing(*codes)
    with serving_beside(broker), connect(broker) as client, BatchProducer(client) as producer:
        producer.send("t", 0, ready(b"a"))
        producer.send("t", 0, ready(b"b"))
        producer.flush()
        assert broker.log.values == [b"a", b"b"]


def test_the_first_failure_is_raised_by_every_call_after_it():
    broker = Refusing(ErrorCode.INVALID_RECORD)
    with serving_beside(broker), connect(broker) as client:
        producer = BatchProducer(client)
        producer.send("t", 0, ready(b"bad"))
        for _ in range(2):
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                producer.flush()
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.send("t", 0, ready(b"good"))
        producer.close()
        assert producer.written() == {}


def test_a_flush_ends_with_the_first_failure_though_others_are_still_on_their_way():
    broker = Refusing(ErrorCode.NONE, ErrorCode.INVALID_RECORD, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100_000)
    with serving_beside(broker), connect(broker) as client:
        producer = BatchProducer(client)
        for _ in range(4):
            with contextlib.suppress(KafkaError):
                producer.send("t", 0, ready(b"v"))
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
        producer.close()


def test_a_topic_that_does_not_exist_is_named_and_one_that_is_being_made_is_waited_for():
    broker = Refusing(unknown_times=2)
    with serving_beside(broker), connect(broker) as client:
        assert BatchProducer(client).partitions_count("t") == 1
        assert broker.created == 3
        producer = BatchProducer(client)
        assert [producer.partitions_count("t") for _ in range(3)] == [1, 1, 1]
        assert broker.created == 4, "what the client knows may be old: each producer asks once"
    broker = Refusing(unknown_times=1_000)
    with serving_beside(broker), connect(broker) as client:
        producer = BatchProducer(client, allow_auto_topic_creation=False)
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 't'"):
            producer.partitions_count("t")
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 't'"):
            producer.send("t", 0, ready(b"v"))
        assert broker.created == 0


def test_a_partition_that_the_topic_does_not_have_is_named():
    broker = Broker()
    with (
        serving_beside(broker),
        connect(broker) as client,
        BatchProducer(client) as producer,
        pytest.raises(KafkaError, match="topic 't' has partitions 0-0, not 1"),
    ):
        producer.send("t", 1, ready(b"v"))


def test_a_broker_that_went_away_is_told_of_when_time_is_over():
    broker = Broker()
    with serving_beside(broker):
        client = connect(broker)
        producer = BatchProducer(client, ProducerConfig(delivery_timeout_ms=50, request_timeout_ms=50))
        assert producer.partitions_count("t") == 1
    producer.send("t", 0, ready(b"b"))
    with pytest.raises(TimedOut, match="1 records for t-0: not delivered"):
        producer.flush()
    producer.close()
    client.close()
