"""ListOffsets: start, end, and where a time is."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import list_offsets
from strandline.errors import ErrorCode
from strandline.sim.faults import Fault
from strandline.sim.world import World
from strandline.wire import messages

from .conftest import TestBroker, registration

Request = messages.request(2)
CONSUMER, DEBUG = -1, -2


def asked(topic, *timestamps, index=0, epoch=-1):
    return Request.ListOffsetsTopic(
        name=topic,
        partitions=[
            Request.ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
            for timestamp in timestamps
        ],
    )


async def ask(broker, version, timestamp, *, topic="t", index=0, epoch=-1, isolation_level=0, replica_id=CONSUMER):
    reply = await broker.call(
        list_offsets,
        version,
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[asked(topic, timestamp, index=index, epoch=epoch)],
    )
    [topic_reply] = reply.topics
    [answer] = topic_reply.partitions
    assert (topic_reply.name, answer.partition_index) == (topic, index)
    return answer


def told(answer):
    return (answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch)


@pytest.fixture
def filled(broker):
    broker.create("t", leader_epoch=3)
    broker.append("t", 1000, 1001)
    broker.append("t", 2000, 5000, 5000)
    broker.append("t", 3000)
    return broker


@pytest.mark.parametrize("version", list_offsets.VERSIONS)
async def test_start_and_end_in_every_version(filled, version):
    filled.parts.hosted.by_name["t", 0].delete_records(1)
    epoch = 3 if version >= 4 else -1
    assert told(await ask(filled, version, -1)) == (0, -1, 6, epoch)
    assert told(await ask(filled, version, -2)) == (0, -1, 1, epoch)


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (1000, 0)),
        (1000, (1000, 0)),
        (1001, (1001, 1)),
        (1002, (2000, 2)),
        (2001, (5000, 3)),
        (5000, (5000, 3)),
        (5001, (-1, -1)),
        (2**62, (-1, -1)),
    ],
)
async def test_the_first_record_at_or_after_a_time(filled, timestamp, found):
    answer = await ask(filled, 7, timestamp)
    assert (answer.timestamp, answer.offset) == found
    assert answer.leader_epoch == (3 if found[1] >= 0 else -1)


async def test_a_time_before_the_log_start_finds_the_first_record_that_is_left(filled):
    filled.parts.hosted.by_name["t", 0].delete_records(1)
    assert told(await ask(filled, 7, 0)) == (0, 1001, 1, 3)


@pytest.mark.parametrize(
    ("timestamp", "since", "answer"),
    [
        (-3, 7, (0, 5000, 3, 3)),
        (-4, 8, (0, -1, 0, 3)),
        (-5, 9, (0, -1, -1, -1)),
        (-6, 11, (0, -1, -1, -1)),
        (-7, 99, None),
        (-(2**63), 99, None),
    ],
)
async def test_special_timestamps_since_their_versions(filled, timestamp, since, answer):
    for version in list_offsets.VERSIONS:
        expected = answer if version >= since else (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
        assert told(await ask(filled, version, timestamp)) == expected, version


async def test_an_empty_log_has_no_greatest_timestamp(broker):
    broker.create("t")
    assert told(await ask(broker, 7, -3)) == (0, -1, -1, -1)
    assert told(await ask(broker, 7, -1)) == (0, -1, 0, 0)


async def test_isolation_binds_consumers_only(broker):
    broker.create("t")
    broker.append("t", 1000)
    broker.append("t", 2000, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    partition = broker.parts.hosted.by_name["t", 0]
    assert partition.last_stable_offset == 1
    assert (await ask(broker, 7, -1, isolation_level=1)).offset == 1
    assert (await ask(broker, 7, 2000, isolation_level=1)).offset == -1
    assert (await ask(broker, 7, -3, isolation_level=1)).offset == -1
    assert (await ask(broker, 7, 2000, isolation_level=0)).offset == 1
    assert (await ask(broker, 7, -1, isolation_level=1, replica_id=DEBUG)).offset == 2
    assert (await ask(broker, 7, -1, isolation_level=2)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "as in Kafka"
    partition.high_watermark = 0
    assert (await ask(broker, 7, -1)).offset == 0
    assert (await ask(broker, 7, -1, replica_id=2)).offset == 2


async def test_leader_epochs_fence(filled):
    """Rule A6."""
    assert (await ask(filled, 4, -1, epoch=3)).offset == 6
    assert (await ask(filled, 4, -1, epoch=2)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await ask(filled, 4, -1, epoch=4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_partitions_that_are_not_here(filled):
    filled.commit([registration(2)])
    filled.create("other", (2,))
    for topic, index, error in (
        ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("other", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        assert told(await ask(filled, 7, -1, topic=topic, index=index)) == (error, -1, -1, -1)
    filled.parts.hosted.by_name["t", 0].fail()
    assert (await ask(filled, 7, -1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_partition_that_is_named_twice_is_answered_with_an_error_both_times(filled):
    filled.create("u")
    reply = await filled.call(list_offsets, 7, replica_id=-1, topics=[asked("t", -1, -2), asked("u", -1)])
    assert [[p.error_code for p in topic.partitions] for topic in reply.topics] == [
        [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST],
        [ErrorCode.NONE],
    ]


# Rule A13: a new leader that has not committed yet all that it began with (KIP-207)


@pytest.fixture
def catching_up(broker):
    """Leads in epoch 1, which begins at 3; 2 is in sync and has not said yet how far it is. Committed is 1."""
    broker.commit([registration(2)])
    broker.create("t", (1, 2))
    for timestamp in (1000, 2000, 3000):
        broker.append("t", timestamp)
    broker.follow(2, 1)
    broker.change(leader=1)
    return broker


@pytest.mark.parametrize("version", list_offsets.VERSIONS)
async def test_a13_the_end_is_not_told_before_it_is_known(catching_up, version):
    error = ErrorCode.LEADER_NOT_AVAILABLE if version < 5 else ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await ask(catching_up, version, -1)).error_code == error
    catching_up.follow(2, 3)
    assert (await ask(catching_up, version, -1)).offset == 3


async def test_a13_what_is_known_is_told(catching_up):
    assert (await ask(catching_up, 7, -2)).offset == 0
    assert (await ask(catching_up, 7, 1000)).offset == 0, "committed"
    assert (await ask(catching_up, 7, 2000)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await ask(catching_up, 7, 9000)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await ask(catching_up, 7, -3)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


async def test_a13_does_not_bind_replicas(catching_up):
    assert (await ask(catching_up, 7, -1, replica_id=2)).offset == 3


async def test_a13_in_the_first_epoch_the_end_is_the_high_watermark(broker):
    broker.commit([registration(2)])
    broker.create("t", (1, 2))
    broker.append("t", 1000)
    assert (await ask(broker, 7, -1)).offset == 0


async def test_a6_a_replica_that_does_not_lead_does_not_answer(catching_up):
    catching_up.change(leader=2)
    assert (await ask(catching_up, 7, -1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await ask(catching_up, 7, -1, epoch=1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await ask(catching_up, 7, -1, epoch=3)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def in_simulation(story, cold_probability):
    """Run `story(broker)` on a disk of which some pages are not in memory."""
    world = World(1)
    node = world.node("n1")
    node.disk.cold_probability = 0

    async def main():
        await node.spawn(on_node())

    async def on_node():
        broker = TestBroker(node.disk, "/data")
        broker.create("t")
        for i in range(100):
            broker.append("t", 1000 + i)
        node.disk.cold_probability = cold_probability
        await story(broker, node.disk)

    try:
        world.run(main())
    finally:
        world.close()


def test_what_is_not_in_memory_is_read_beside_the_event_loop():
    async def story(broker, disk):
        for timestamp in range(1000, 1100):
            assert (await ask(broker, 7, timestamp)).offset == timestamp - 1000

    in_simulation(story, 0.2)


def test_a_device_that_never_gives_the_page_is_answered_with_try_again():
    async def story(broker, disk):
        assert (await ask(broker, 7, 1050)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert (await ask(broker, 4, 1050)).error_code == ErrorCode.LEADER_NOT_AVAILABLE

    in_simulation(story, 1.0)


def test_a_device_that_fails_takes_the_log_dir_with_it():
    async def story(broker, disk):
        disk.faults.set("/data", Fault.READ_ERROR)
        assert (await ask(broker, 7, 1050)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.storage_errors == [broker.parts.hosted.by_name["t", 0]]

    in_simulation(story, 1.0)
