"""kafka-python as a judge of the broker."""

from __future__ import annotations

import uuid

import pytest

from tests.system.clients import CLIENTS, KAFKA_PYTHON, Broker, Client, Rec
from tests.system.conftest import MakeTopic
from tests.system.stories import NOW_MS, PARTITIONS, expected, round_trip

READABLE = KAFKA_PYTHON.codecs


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", KAFKA_PYTHON.codecs)
async def test_what_was_written_is_read(either: Broker, make_topic: MakeTopic, codec: str, idempotent: bool) -> None:
    await round_trip(KAFKA_PYTHON, KAFKA_PYTHON, either, make_topic(PARTITIONS), codec, idempotent=idempotent)


@pytest.mark.parametrize("writer", [each for each in CLIENTS if each is not KAFKA_PYTHON], ids=lambda each: each.name)
async def test_reads_what_others_wrote(broker: Broker, make_topic: MakeTopic, writer: Client) -> None:
    for codec in READABLE:
        await round_trip(writer, KAFKA_PYTHON, broker, make_topic(PARTITIONS), codec)


async def test_timestamps_find_offsets(either: Broker, make_topic: MakeTopic) -> None:
    from kafka import TopicPartition

    topic = make_topic()
    await KAFKA_PYTHON.write(either, topic, [Rec(0, None, b"x", NOW_MS + 10 * i) for i in range(100)])
    partition = TopicPartition(topic, 0)
    with KAFKA_PYTHON.consumer(either) as consumer:
        for asked_ms, offset, timestamp_ms in ((0, 0, NOW_MS), (NOW_MS + 731, 74, NOW_MS + 740)):
            found = consumer.offsets_for_times({partition: asked_ms})[partition]
            assert (found.offset, found.timestamp) == (offset, timestamp_ms)
        assert consumer.offsets_for_times({partition: NOW_MS + 991})[partition] is None
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 100}


async def test_writing_to_a_new_name_makes_the_topic(either: Broker) -> None:
    topic = f"new-{uuid.uuid4().hex[:8]}"
    records = [Rec(1, b"k", b"v", NOW_MS)]
    offsets = await KAFKA_PYTHON.write(either, topic, records)
    assert await KAFKA_PYTHON.read(either, topic, 2) == {0: []} | expected(records, offsets)


def test_topics_are_made_and_removed(either: Broker) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(**either.kafka_python())
    try:
        topic = f"made-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(topic, 4, 1)])
        (described,) = admin.describe_topics([topic])
        assert len(described["partitions"]) == 4
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
    finally:
        admin.close()
