"""librdkafka, by way of confluent-kafka, as a judge of the broker."""

from __future__ import annotations

import time
import uuid

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.system.clients import CLIENTS, CONFLUENT, TIMEOUT_S, Broker, Client, Rec, read_from
from tests.system.conftest import MakeTopic
from tests.system.server import eventually
from tests.system.stories import NOW_MS, PARTITIONS, expected, round_trip


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CONFLUENT.codecs)
async def test_what_was_written_is_read(either: Broker, make_topic: MakeTopic, codec: str, idempotent: bool) -> None:
    await round_trip(CONFLUENT, CONFLUENT, either, make_topic(PARTITIONS), codec, idempotent=idempotent)


@pytest.mark.parametrize("writer", [each for each in CLIENTS if each is not CONFLUENT], ids=lambda each: each.name)
async def test_reads_what_others_wrote(broker: Broker, make_topic: MakeTopic, writer: Client) -> None:
    for codec in writer.codecs:
        await round_trip(writer, CONFLUENT, broker, make_topic(PARTITIONS), codec)


async def test_an_offset_inside_a_batch_is_a_place_to_start(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    records = [Rec(0, None, b"%d" % i, NOW_MS + i) for i in range(100)]
    offsets = await CONFLUENT.write(broker, topic, records)
    assert read_from(broker, topic, start=37) == expected(records[37:], offsets[37:])


async def test_a_header_may_have_no_value(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    records = [Rec(0, b"k", b"v", NOW_MS, (("nothing", None), ("something", b"1")))]
    offsets = await CONFLUENT.write(broker, topic, records)
    assert await CONFLUENT.read(broker, topic) == expected(records, offsets)


async def test_timestamps_find_offsets(either: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for start in (0, 50):  # two batches, so that the answer lies inside the second
        await CONFLUENT.write(either, topic, [Rec(0, None, b"x", NOW_MS + 10 * i) for i in range(start, start + 50)])
    consumer = either.consumer()
    try:

        def offset_at(timestamp_ms: int) -> int:
            found = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], timeout=TIMEOUT_S)
            return found[0].offset

        assert offset_at(0) == 0
        assert offset_at(NOW_MS + 10 * 73) == 73
        assert offset_at(NOW_MS + 10 * 73 + 1) == 74
        assert offset_at(NOW_MS + 10 * 99 + 1) == confluent_kafka.OFFSET_END
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S) == (0, 100)
    finally:
        consumer.close()


async def test_log_append_time_is_the_brokers_clock(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    await CONFLUENT.write(broker, topic, [Rec(0, None, b"x", NOW_MS)])
    consumer = broker.consumer()
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        kind, timestamp_ms = message.timestamp()
        assert kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
        assert before_ms <= timestamp_ms <= int(time.time() * 1000)
    finally:
        consumer.close()


async def test_a_consumer_that_waits_gets_what_arrives(broker: Broker, make_topic: MakeTopic) -> None:
    """The fetch that hangs is answered by the append, long before its wait is over."""
    topic = make_topic()
    consumer = broker.consumer(fetch_wait_max_ms=15_000)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.3) is None  # its fetch is on its way, or waits already
        started = time.monotonic()
        await CONFLUENT.write(broker, topic, [Rec(0, None, b"news", NOW_MS)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.value() == b"news"
        assert time.monotonic() - started < 5
    finally:
        consumer.close()


async def test_writing_to_a_new_name_makes_the_topic(either: Broker) -> None:
    topic = f"new-{uuid.uuid4().hex[:8]}"
    records = [Rec(1, b"k", b"v", NOW_MS)]
    offsets = await CONFLUENT.write(either, topic, records)
    assert await CONFLUENT.read(either, topic, 2) == {0: []} | expected(records, offsets)


def test_topics_are_made_and_removed(either: Broker) -> None:
    admin = AdminClient(either.confluent())
    topic = f"made-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(TIMEOUT_S)
    eventually(lambda: len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 4, topic)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    eventually(lambda: topic not in admin.list_topics(timeout=TIMEOUT_S).topics, f"{topic} gone")
    assert either.server is not None
    data = either.server.data
    eventually(lambda: not list(data.glob(f"{topic}-?")), f"directories of {topic} gone or renamed")


async def test_a_topic_made_again_under_the_same_name_is_empty(broker: Broker) -> None:
    admin = AdminClient(broker.confluent())
    topic = f"again-{uuid.uuid4().hex[:8]}"
    for round_number in range(2):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
        eventually(lambda: topic in admin.list_topics(timeout=TIMEOUT_S).topics, topic)
        records = [Rec(0, None, b"round %d" % round_number, NOW_MS)]
        offsets = await CONFLUENT.write(broker, topic, records)
        assert offsets == [0]
        assert await CONFLUENT.read(broker, topic) == expected(records, offsets)
        admin.delete_topics([topic])[topic].result(TIMEOUT_S)
        eventually(lambda: topic not in admin.list_topics(timeout=TIMEOUT_S).topics, f"{topic} gone")


async def test_a_record_over_the_limit_is_refused(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="2000")
    errors: list[KafkaError | None] = []
    producer = confluent_kafka.Producer(broker.confluent())
    producer.produce(topic, b"x" * 3000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert [error and error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert await CONFLUENT.read(broker, topic) == {0: []}


async def test_a_compacted_topic_wants_keys(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact")
    errors: list[KafkaError | None] = []
    producer = confluent_kafka.Producer(broker.confluent())
    producer.produce(topic, b"no key", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert [error and error.code() for error in errors] == [KafkaError.INVALID_RECORD]
    records = [Rec(0, b"key", b"value", NOW_MS)]
    assert await CONFLUENT.read(broker, topic) == {0: []}
    offsets = await CONFLUENT.write(broker, topic, records)
    assert await CONFLUENT.read(broker, topic) == expected(records, offsets)


def test_nobody_speaks_plainly_to_the_tls_listener(broker_tls: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker_tls.bootstrap, "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)


def test_an_unknown_authority_is_not_trusted(broker_tls: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker_tls.bootstrap, "security.protocol": "SSL", "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
