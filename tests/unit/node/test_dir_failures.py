"""A log dir that fails goes alone (a full disk, a sync that fails; rule B13): whatever the disk refuses, its partitions answer
KAFKA_STORAGE_ERROR, the others go on, and the controller hears of it."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import errno
import random
import resource

import pytest

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode
from strandline.log import names
from strandline.log.recovery import load
from strandline.node.log_dirs import StorageError, format_dirs, open_dirs
from strandline.node.node import NodeFailed
from strandline.runtime.disk import FileDisk
from strandline.sim.faults import Fault
from strandline.wire import messages

from .conftest import FETCH, PRODUCE, Fetch, Produce, batch, values_of
from .lives import CLUSTER_ID, lives

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
LIST_OFFSETS, DELETE_RECORDS, DESCRIBE_LOG_DIRS = 2, 21, 35
TWO = {"log_dirs": "/a,/b"}
"""The metadata log is in the first."""


async def produced(stage, index, topic="t"):
    data = Produce.PartitionProduceData(index=index, records=batch(b"v"))
    topic_data = Produce.TopicProduceData(name=topic, partition_data=[data])
    reply = await stage.call(PRODUCE, 9, Produce(acks=-1, timeout_ms=5000, topic_data=[topic_data]))
    return reply.responses[0].partition_responses[0].error_code


async def fetched(stage, index, topic="t"):
    wanted = Fetch.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [Fetch.FetchTopic(topic=topic, partitions=[wanted])]
    reply = await stage.call(FETCH, 12, Fetch(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics))
    return reply.responses[0].partitions[0].error_code


async def listed(stage, index, topic="t"):
    request = messages.request(LIST_OFFSETS)
    asked = request.ListOffsetsPartition(partition_index=index, timestamp=-1)
    reply = await stage.call(
        LIST_OFFSETS, 7, request(replica_id=-1, topics=[request.ListOffsetsTopic(name=topic, partitions=[asked])])
    )
    return reply.topics[0].partitions[0].error_code


async def deleted(stage, index, topic="t"):
    request = messages.request(DELETE_RECORDS)
    asked = request.DeleteRecordsPartition(partition_index=index, offset=0)
    reply = await stage.call(
        DELETE_RECORDS, 2, request(topics=[request.DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1000)
    )
    return reply.topics[0].partitions[0].error_code


async def answers(stage, index):
    """What Produce, Fetch, ListOffsets and DeleteRecords say."""
    return [await ask(stage, index) for ask in (produced, fetched, listed, deleted)]


async def two_partitions(stage, **configs):
    """A topic with a partition in each log dir; the index of each."""
    assert await stage.create_topic("t", 2, **configs) == 0
    return tuple(next(i for i in (0, 1) if stage.disk.exists(f"{path}/t-{i}")) for path in ("/a", "/b"))


async def only_b_is_offline(stage, in_a, in_b):
    """From the outside and from the inside; what the disk refused is repaired, which changes nothing before a restart."""
    stage.disk.faults.clear()
    assert [log_dir.online for log_dir in stage.node.replicas.log_dirs] == [True, False]
    assert await answers(stage, in_b) == [STORAGE_ERROR] * 4
    assert await answers(stage, in_a) == [0] * 4
    assert await stage.create_topic("new", 3) == 0
    assert [name for name in stage.disk.listdir("/b") if name.startswith("new")] == []
    assert [await produced(stage, index, "new") for index in range(3)] == [0] * 3
    reply = await stage.call(DESCRIBE_LOG_DIRS, 4, messages.request(DESCRIBE_LOG_DIRS)(topics=None))
    assert {result.log_dir: result.error_code for result in reply.results} == {"/a": 0, "/b": STORAGE_ERROR}
    await asyncio.sleep(1)
    online = [log_dir.directory_id for log_dir in stage.node.replicas.log_dirs if log_dir.online]
    assert list(stage.node.quorum.committed.brokers[1].log_dirs) == online, "the controller knows"
    # Nobody else can lead what was in it.
    leaders = [state.leader for state in stage.node.quorum.committed.topics["t"].partitions]
    assert (leaders[in_a], leaders[in_b]) == (1, -1)


# While it runs


async def append(stage, in_b):
    assert await produced(stage, in_b) == STORAGE_ERROR


async def read(stage, in_b):
    assert await fetched(stage, in_b) == STORAGE_ERROR


async def make_a_partition(stage, in_b):
    """One of two new ones goes there, or tries to."""
    assert await stage.create_topic("u", 2) == 0
    assert [await produced(stage, index, "u") for index in (0, 1)] == [0, 0], "both found a place"
    assert [name for name in stage.disk.listdir("/a") if name.startswith("u-")] == ["u-0", "u-1"]


async def write_checkpoints(stage, in_b):
    for log_dir in stage.node.replicas.log_dirs:
        await stage.node.replicas.checkpoint(log_dir)


@pytest.mark.parametrize(
    ("path", "fault", "touch"),
    [
        ("/b/t-", Fault.FULL, append),
        ("/b/t-", Fault.READ_ONLY, append),
        ("/b/t-", Fault.WRITE_ERROR, append),
        ("/b/t-", Fault.SYNC_ERROR, append),
        ("/b/t-", Fault.READ_ERROR, read),
        ("/b/u-", Fault.FULL, make_a_partition),
        ("/b/u-", Fault.READ_ONLY, make_a_partition),
        ("/b/u-", Fault.WRITE_ERROR, make_a_partition),
        ("/b", Fault.SYNC_ERROR, make_a_partition),
        ("/b/recovery-point", Fault.FULL, write_checkpoints),
        ("/b/replication-offset", Fault.READ_ONLY, write_checkpoints),
        ("/b/replication-offset", Fault.WRITE_ERROR, write_checkpoints),
        ("/b/recovery-point", Fault.SYNC_ERROR, write_checkpoints),
    ],
)
def test_whatever_a_disk_refuses_takes_exactly_its_log_dir_offline(path, fault, touch):
    async def story(stage):
        in_a, in_b = await two_partitions(stage, flush_messages="1")
        assert [await produced(stage, index) for index in (in_a, in_b)] == [0, 0]
        stage.disk.faults.set(path, fault)
        await touch(stage, in_b)
        await only_b_is_offline(stage, in_a, in_b)

    lives(story, **TWO)


async def roll(stage, in_b):
    assert await produced(stage, in_b) == STORAGE_ERROR, "the second batch needs another segment"
    assert await produced(stage, in_b) == 0, "and gets it once there is a handle"


async def make_partitions_in_the_end(stage, in_b):
    assert await stage.create_topic("u", 2) == 0
    assert [await produced(stage, index, "u") for index in (0, 1)] == [0, 0]
    assert [name for name in stage.disk.listdir("/b") if name.startswith("u-")], "it waited for its place"


@pytest.mark.parametrize(
    ("path", "times", "touch"),
    [
        ("/b/t-", 1, roll),
        ("/b/u-", 5, make_partitions_in_the_end),
        ("/b", 5, make_partitions_in_the_end),
        ("/b/recovery-point", 1, write_checkpoints),
        ("/b/replication-offset", 1, write_checkpoints),
    ],
)
def test_a_process_without_descriptors_is_no_failed_log_dir(path, times, touch):
    async def story(stage):
        in_a, in_b = await two_partitions(stage, internal_segment_bytes="100", flush_messages="1")
        assert [await produced(stage, index) for index in (in_a, in_b)] == [0, 0]
        stage.disk.faults.set(path, Fault.NO_HANDLES, times=times)
        await touch(stage, in_b)
        assert stage.logged("no descriptor is left") == 1
        stage.disk.faults.clear()
        await write_checkpoints(stage, in_b)
        assert [log_dir.online for log_dir in stage.node.replicas.log_dirs] == [True, True]
        assert await answers(stage, in_b) == [0] * 4
        for _ in range(3):
            assert [await produced(stage, index) for index in (in_a, in_b)] == [0, 0]
        stage.index = in_b
        stage.end = stage.node.context.hosted.by_name["t", in_b].log.log_end_offset

    async def second(stage):
        assert [log_dir.online for log_dir in stage.node.replicas.log_dirs] == [True, True]
        assert stage.node.context.hosted.by_name["t", stage.index].log.log_end_offset == stage.end

    lives(story, second, **TWO)


def test_a_log_dir_that_can_not_be_looked_through_for_want_of_descriptors_keeps_the_node_from_starting():
    async def first(stage):
        _, in_b = await two_partitions(stage)
        assert await produced(stage, in_b) == 0
        stage.disk.faults.set("/b", Fault.NO_HANDLES)

    async def second(stage):
        raise AssertionError("it started, and would have taken its logs for new ones")

    with pytest.raises(OSError, match="Too many open files"):
        lives(first, second, **TWO)


def test_no_half_batch_stays_of_an_append_that_failed():
    async def first(stage):
        _, in_b = await two_partitions(stage)
        stage.index = in_b
        assert await produced(stage, in_b) == 0
        before = stage.disk.peek(f"/b/t-{in_b}/{names.of_offset(0, '.log')}")
        stage.disk.faults.set("/b/t-", Fault.FULL)
        assert await produced(stage, in_b) == STORAGE_ERROR
        assert stage.disk.peek(f"/b/t-{in_b}/{names.of_offset(0, '.log')}") == before
        stage.disk.faults.clear()

    async def second(stage):
        assert values_of(stage.node.context.hosted.by_name["t", stage.index]) == [b"v"]
        assert not stage.logged("log cut")

    lives(first, second, **TWO)


def test_a_flush_that_failed_is_never_tried_again():
    async def story(stage):
        _, in_b = await two_partitions(stage, flush_messages="1")
        stage.disk.faults.set("/b/t-", Fault.SYNC_ERROR, times=1)
        assert await produced(stage, in_b) == STORAGE_ERROR
        assert await produced(stage, in_b) == STORAGE_ERROR
        assert stage.node.context.hosted.by_name["t", in_b].high_watermark == 0

    lives(story, **TWO)


def test_a_broker_that_can_tell_nobody_of_a_failed_log_dir_ends():
    async def story(stage):
        _, in_b = await two_partitions(stage)
        await asyncio.sleep(1)
        stage.node.broker_server.lifecycle._channel._leader = lambda: (1, -1, None)  # the quorum is gone
        stage.disk.faults.set("/b/t-", Fault.FULL)
        assert await produced(stage, in_b) == STORAGE_ERROR
        with pytest.raises(NodeFailed, match="did not learn in time that a log dir failed"):
            await asyncio.wait_for(stage.node.failed(), 31)

    lives(story, **TWO)


def test_a_log_dir_that_fails_before_the_controller_knows_what_is_in_it():
    """The assignment is told afterwards, and the leaders go as if it had been told before."""

    async def story(stage):
        stage.disk.faults.set("/b/t-", Fault.SYNC_ERROR)
        in_a, in_b = await two_partitions(stage, flush_messages="1")
        assert await produced(stage, in_b) == STORAGE_ERROR
        await only_b_is_offline(stage, in_a, in_b)
        state = stage.node.quorum.committed.topics["t"].partitions[in_b]
        assert state.directories == (stage.node.replicas.log_dirs[1].directory_id,)

    lives(story, **TWO)


# When it starts


async def leave_two(stage):
    stage.indexes = await two_partitions(stage)
    assert [await produced(stage, index) for index in stage.indexes] == [0, 0]
    await asyncio.sleep(1)  # the controller knows where they are


async def starts_without_b(stage):
    stage.lines.clear()
    node = stage.node = stage.make_node()
    await node.start()
    assert stage.logged("log dir") >= 1
    in_a, in_b = stage.indexes
    stage.disk.faults.clear()
    assert await answers(stage, in_b) == [STORAGE_ERROR] * 4, "not NOT_LEADER_OR_FOLLOWER, nor an empty log"
    assert await answers(stage, in_a) == [0] * 4
    assert f"t-{in_b}" not in stage.disk.listdir("/a")
    assert len(node.quorum.committed.brokers[1].log_dirs) == 1
    assert await stage.create_topic("new", 3) == 0
    assert [await produced(stage, index, "new") for index in range(3)] == [0] * 3


async def has_b_again(stage):
    stage.node = stage.make_node()
    await stage.node.start()
    for index in stage.indexes:
        assert values_of(stage.node.context.hosted.by_name["t", index])[0] == b"v"
        assert await produced(stage, index) == 0
    assert [log_dir.online for log_dir in stage.node.replicas.log_dirs] == [True, True]


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/b/meta.properties", Fault.READ_ERROR),
        ("/b", Fault.READ_ERROR),
        ("/b", Fault.READ_ONLY),
        ("/b/t-", Fault.READ_ERROR),
    ],
)
@pytest.mark.parametrize("clean", [False, True])
def test_a_broker_starts_without_a_log_dir_that_cannot_be_used_and_has_it_back_later(path, fault, clean):
    async def first(stage):
        await stage.start()
        await leave_two(stage)
        if clean:
            await stage.node.stop()

    async def second(stage):
        stage.disk.faults.set(path, fault)
        await starts_without_b(stage)

    lives(first, second, has_b_again, started=False, **TWO)


def test_a_log_dir_whose_volume_is_not_mounted():
    async def first(stage):
        await stage.start()
        await leave_two(stage)

    async def second(stage):
        stage.disk.rename("/b", "/elsewhere")
        stage.disk.mkdir("/b")
        await starts_without_b(stage)
        assert stage.disk.listdir("/b") == []
        stage.disk.remove_tree("/b")
        stage.disk.rename("/elsewhere", "/b")

    lives(first, second, has_b_again, started=False, **TWO)


def test_a_replica_of_which_the_controller_never_heard_is_not_begun_anew_while_a_log_dir_is_offline():
    async def first(stage):
        await stage.start()
        reports = stage.node.broker_server.replication._dir_assignments
        reports.is_in = lambda directory_id, topic, index: None  # nothing is reported
        stage.indexes = await two_partitions(stage)
        assert [await produced(stage, index) for index in stage.indexes] == [0, 0]

    async def second(stage):
        stage.disk.faults.set("/b", Fault.READ_ERROR)
        await starts_without_b(stage)

    lives(first, second, has_b_again, started=False, **TWO)


def test_a_partition_that_was_offline_since_the_start_can_be_deleted_and_made_again():
    async def first(stage):
        await stage.start()
        await leave_two(stage)

    async def second(stage):
        stage.disk.faults.set("/b", Fault.READ_ERROR)
        await starts_without_b(stage)
        await stage.delete()
        assert not stage.node.replicas.unopened
        assert await stage.create_topic("t", 2) == 0
        assert [await produced(stage, index) for index in (0, 1)] == [0, 0]

    lives(first, second, started=False, **TWO)


@pytest.mark.parametrize("problem", ["unreadable", "unformatted"])
def test_no_broker_starts_without_the_log_dir_of_the_metadata(problem):
    async def first(stage):
        await stage.start()

    async def second(stage):
        if problem == "unreadable":
            stage.disk.faults.set("/a/meta.properties", Fault.READ_ERROR)
        else:
            stage.disk.remove("/a/meta.properties")
        with pytest.raises((StorageError, OSError), match="/a"):
            await stage.make_node().start()

    lives(first, second, started=False, **TWO)


# With real files


@pytest.fixture
def file_bytes_max():
    """Files of this process can't grow past this: a write gets as far as there, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def open_log(disk, path):
    return load(disk, str(path), TopicConfig.build(), clean=False, recovery_point=0, log_start_offset=0, now_ms=0)


def test_a_volume_that_is_full_in_the_middle_of_a_batch_keeps_none_of_it(tmp_path, file_bytes_max):
    disk = FileDisk(max_open_files=10)
    log = open_log(disk, tmp_path / "t-0").log
    log.append_as_leader(memoryview(bytearray(batch(b"kept"))), 0, 0)
    size, end = log.segments.active.size, log.log_end_offset
    file_bytes_max(size + 1000)
    with pytest.raises(OSError) as refused:
        log.append_as_leader(memoryview(bytearray(batch(b"x" * 5000))), 0, 0)
    assert refused.value.errno == errno.EFBIG
    on_disk = (tmp_path / "t-0" / names.of_offset(0, ".log")).read_bytes()
    assert (len(on_disk), log.log_end_offset) == (size, end)
    disk.close()
    again = FileDisk(max_open_files=10)
    recovered = open_log(again, tmp_path / "t-0")
    assert (recovered.log.log_end_offset, recovered.truncated_bytes) == (1, 0)
    again.close()


@pytest.mark.parametrize("problem", ["a file is in its place", "nothing is in its place"])
def test_a_log_dir_of_a_real_disk_that_is_not_one(tmp_path, problem):
    disk = FileDisk(max_open_files=10)
    paths = [str(tmp_path / name) for name in "ab"]
    format_dirs(disk, paths[:1], CLUSTER_ID, 1, random.Random(1))
    if problem.startswith("a file"):
        (tmp_path / "b").write_bytes(b"")
    cluster_id, (good, bad) = open_dirs(disk, paths, 1, paths[:1])
    assert (cluster_id, good.online, bad.online) == (CLUSTER_ID, True, False)
    assert paths[1] in bad.problem
    disk.close()
