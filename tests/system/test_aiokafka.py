"""aiokafka as a judge of the broker."""

from __future__ import annotations

import uuid

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.system.clients import AIOKAFKA, CLIENTS, Broker, Client, Rec
from tests.system.conftest import MakeTopic
from tests.system.stories import NOW_MS, PARTITIONS, expected, round_trip


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", AIOKAFKA.codecs)
async def test_what_was_written_is_read(either: Broker, make_topic: MakeTopic, codec: str, idempotent: bool) -> None:
    await round_trip(AIOKAFKA, AIOKAFKA, either, make_topic(PARTITIONS), codec, idempotent=idempotent)


@pytest.mark.parametrize("writer", [each for each in CLIENTS if each is not AIOKAFKA], ids=lambda each: each.name)
async def test_reads_what_others_wrote(broker: Broker, make_topic: MakeTopic, writer: Client) -> None:
    for codec in writer.codecs:
        await round_trip(writer, AIOKAFKA, broker, make_topic(PARTITIONS), codec)


async def test_timestamps_find_offsets(either: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    await AIOKAFKA.write(either, topic, [Rec(0, None, b"x", NOW_MS + 10 * i) for i in range(100)])
    partition = TopicPartition(topic, 0)
    async with AIOKAFKA.consumer(either) as consumer:
        for asked_ms, offset, timestamp_ms in ((0, 0, NOW_MS), (NOW_MS + 731, 74, NOW_MS + 740)):
            found = (await consumer.offsets_for_times({partition: asked_ms}))[partition]
            assert (found.offset, found.timestamp) == (offset, timestamp_ms)
        assert await consumer.offsets_for_times({partition: NOW_MS + 991}) == {partition: None}
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 100}


async def test_writing_to_a_new_name_makes_the_topic(either: Broker) -> None:
    topic = f"new-{uuid.uuid4().hex[:8]}"
    records = [Rec(1, b"k", b"v", NOW_MS)]
    offsets = await AIOKAFKA.write(either, topic, records)
    assert await AIOKAFKA.read(either, topic, 2) == {0: []} | expected(records, offsets)


async def test_topics_are_made_and_removed(either: Broker) -> None:
    admin = AIOKafkaAdminClient(**either.aiokafka())
    await admin.start()
    try:
        topic = f"made-{uuid.uuid4().hex[:8]}"
        await admin.create_topics([NewTopic(topic, 4, 1)])
        (described,) = await admin.describe_topics([topic])
        assert sorted(each["partition"] for each in described["partitions"]) == [0, 1, 2, 3]
        assert {each["leader"] for each in described["partitions"]} == {1}
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
    finally:
        await admin.close()
