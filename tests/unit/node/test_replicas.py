"""The partitions that a node hosts: what they inherit, what a failing disk does to them, what is left on the disk."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.node.log_dirs import LogDir
from strandline.node.log_effects import perform
from strandline.node.node import NodeFailed
from strandline.node.replicas import Replicas
from strandline.node.signals import ReplicaSignals
from strandline.runtime.disk import FileDisk
from strandline.runtime.logging import JsonLogger
from strandline.sim.faults import Fault
from strandline.sim.world import World

from .conftest import FETCH, PRODUCE, Fetch, Produce, batch, values_of
from .lives import Host, lives

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


def bounds(partition):
    return partition.log.log_start_offset, partition.log.log_end_offset


async def produced(stage, *indexes, topic="t"):
    """Error codes of one Produce to these partitions of a topic."""
    data = [Produce.PartitionProduceData(index=index, records=batch(b"v")) for index in indexes]
    topic_data = Produce.TopicProduceData(name=topic, partition_data=data)
    reply = await stage.call(PRODUCE, 9, Produce(acks=-1, timeout_ms=5000, topic_data=[topic_data]))
    return [answer.error_code for answer in reply.responses[0].partition_responses]


# What a new topic of an old name inherits: nothing


async def a_topic_with_a_past(stage):
    partition = await stage.create()
    for _ in range(20):
        stage.append(partition, *[b"old"] * 50)
    await perform(partition.log.flush())
    partition.delete_records(500)
    await stage.node.replicas.checkpoint(stage.log_dir)
    assert stage.text("log-start-offset-checkpoint") == "0\n1\nt 0 500\n"
    assert stage.text("recovery-point-offset-checkpoint") == "0\n1\nt 0 1000\n"


async def made_again(stage):
    await stage.delete()
    partition = await stage.create(flush_messages="1")
    assert bounds(partition) == (0, 0)
    for i in range(40):
        stage.append(partition, b"%d" % i)
    await asyncio.sleep(0.5)
    assert partition.high_watermark == 40


async def all_there(stage):
    assert bounds(stage.partition()) == (0, 40)
    assert values_of(stage.partition()) == [b"%d" % i for i in range(40)]
    assert not stage.logged("log cut")


def test_a_topic_made_again_inherits_nothing_after_a_kill():
    async def first(stage):
        await a_topic_with_a_past(stage)
        await made_again(stage)

    lives(first, all_there)


def test_a_topic_made_again_inherits_nothing_from_what_a_clean_stop_wrote_down():
    async def first(stage):
        await a_topic_with_a_past(stage)
        await stage.node.stop()

    async def second(stage):
        assert bounds(stage.partition()) == (500, 1000)
        await made_again(stage)

    lives(first, second, all_there)


def test_checkpoints_are_cleared_before_another_log_can_have_the_name():
    async def story(stage):
        await a_topic_with_a_past(stage)
        await stage.delete()
        for name in (checkpoints.RECOVERY_POINT_CHECKPOINT, checkpoints.LOG_START_OFFSET_CHECKPOINT):
            assert stage.text(name) == "0\n0\n"

    lives(story)


# A disk that fails


def test_an_error_in_one_partition_of_a_produce_fails_the_whole_log_dir():
    async def story(stage):
        await stage.create_topic("t", 2, flush_messages="1")
        await stage.create("other")
        stage.flushes_take(0.1)
        stage.disk.faults.set("/data/t-1", Fault.FULL)
        assert await produced(stage, 0, 1) == [STORAGE_ERROR, STORAGE_ERROR]
        assert await produced(stage, 0, topic="other") == [STORAGE_ERROR]
        assert all(partition.offline for partition in stage.node.context.hosted.by_name.values())
        assert not stage.log_dir.online
        with pytest.raises(NodeFailed, match=r"every log dir failed, the last one with.*/data/t-1"):
            await stage.node.failed()

    lives(story)


def test_a_log_dir_that_fails_while_logs_are_opened_takes_along_those_that_were():
    async def story(stage):
        stage.disk.faults.set("/a/t-2", Fault.WRITE_ERROR)
        await stage.create_topic("t", 6)
        failed = [log_dir for log_dir in stage.node.replicas.log_dirs if not log_dir.online]
        assert [log_dir.path for log_dir in failed] == ["/a"]
        hosted = stage.node.context.hosted.by_name.values()
        assert {p.log.directory[:2]: p.offline for p in hosted} == {"/a": True, "/b": False}
        assert all(p.offline == p.log.directory.startswith("/a") for p in hosted)

    lives(story, log_dirs="/a,/b")


def test_a_fetch_that_waits_hears_of_all_partitions_of_a_failed_log_dir():
    async def story(stage):
        await stage.create_topic("t", 3, flush_messages="1")
        wanted = [Fetch.FetchPartition(partition=index, partition_max_bytes=1000) for index in (0, 1, 2)]
        topics = [Fetch.FetchTopic(topic="t", partitions=wanted)]
        fetching = asyncio.create_task(
            stage.call(FETCH, 12, Fetch(max_wait_ms=5000, min_bytes=1, max_bytes=1000, topics=topics))
        )
        await asyncio.sleep(0.5)
        stage.disk.faults.set("/data/t-2", Fault.FULL)
        await produced(stage, 2)
        [topic] = (await fetching).responses
        assert [answer.error_code for answer in topic.partitions] == [STORAGE_ERROR] * 3

    lives(story)


def test_a_log_dir_that_fails_goes_alone():
    async def story(stage):
        await stage.create_topic("t", 2)
        [bad] = [index for index in (0, 1) if stage.disk.exists(f"/b/t-{index}")]
        stage.disk.faults.set("/b", Fault.WRITE_ERROR)
        assert await produced(stage, bad) == [STORAGE_ERROR]
        stage.disk.faults.clear()
        assert await produced(stage, bad, 1 - bad) == [STORAGE_ERROR, 0]
        assert [log_dir.online for log_dir in stage.node.replicas.log_dirs] == [True, False]
        # What is new goes where there is a disk.
        await stage.create_topic("u", 2)
        assert await produced(stage, 0, 1, topic="u") == [0, 0]

    lives(story, log_dirs="/a,/b")


def test_a_flush_that_fails_takes_its_log_dir_offline():
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.disk.faults.set("/data/t-0", Fault.SYNC_ERROR)
        assert await produced(stage, 0) == [STORAGE_ERROR]
        assert partition.offline
        assert partition.high_watermark == 0

    lives(story)


@pytest.mark.parametrize("fault", [Fault.WRITE_ERROR, Fault.FULL, Fault.SYNC_ERROR])
def test_an_error_while_checkpoints_are_written_takes_the_log_dir_offline(fault):
    async def story(stage):
        partition = await stage.create()
        stage.disk.faults.set("/data/recovery-point", fault)
        await stage.node.replicas.checkpoint(stage.log_dir)
        assert not stage.log_dir.online
        assert partition.offline
        assert await produced(stage, 0) == [STORAGE_ERROR]

    lives(story)


def test_what_was_acknowledged_in_a_new_topic_outlives_a_power_loss():
    async def first(stage):
        assert await stage.create_topic("t", 20, flush_messages="1") == 0
        assert await produced(stage, *range(20)) == [0] * 20

    async def second(stage):
        assert [values_of(stage.node.context.hosted.by_name["t", index]) for index in range(20)] == [[b"v"]] * 20

    lives(first, second, power_loss=True)


# Placing


def test_the_partitions_of_a_new_topic_spread_over_the_log_dirs():
    async def story(stage):
        await stage.create_topic("t", 9)
        for path in ("/a", "/b", "/c"):
            assert sum(name.startswith("t-") for name in stage.disk.listdir(path)) == 3

    lives(story, log_dirs="/a,/b,/c")


# Checkpoints


def test_the_three_checkpoints_say_what_kafkas_say():
    async def story(stage):
        first, _ = await stage.create("b"), await stage.create("a")
        stage.append(first, b"1", b"2", b"3")
        await perform(first.log.flush())
        stage.append(first, b"4")
        first.delete_records(2)
        await stage.node.replicas.checkpoint(stage.log_dir)
        assert stage.text("recovery-point-offset-checkpoint") == "0\n2\na 0 0\nb 0 3\n"
        assert stage.text("replication-offset-checkpoint") == "0\n2\na 0 0\nb 0 4\n"
        # Only where the first segment's name does not say it already.
        assert stage.text("log-start-offset-checkpoint") == "0\n1\nb 0 2\n"

    lives(story)


def test_topics_come_and_go_while_a_checkpoint_is_being_written():
    async def story(stage):
        partition = await stage.create()
        stage.append(partition)
        stage.disk.offload_s = (0.5, 0.5)
        writing = asyncio.create_task(stage.node.replicas.checkpoint(stage.log_dir))
        await asyncio.sleep(0.1)
        stage.disk.offload_s = (0.001, 0.001)
        stage.append(partition)
        await stage.create("new")
        assert not writing.done()
        await writing
        assert stage.text("replication-offset-checkpoint") == "0\n1\nt 0 1\n", "numbers of when it began"
        await stage.delete("new")

    lives(story)


# What is left on the disk


@pytest.mark.parametrize("records", [0, 1])
def test_a_deleted_partition_leaves_no_file_open_and_no_directory(records):
    async def story(stage):
        await stage.create("stays")
        open_files = len(stage.disk._files)
        for _ in range(5):
            partition = await stage.create()
            for _ in range(records):
                stage.append(partition)
            await stage.delete()
        assert len(stage.disk._files) == open_files
        assert sum(name.endswith("-delete") for name in stage.disk.listdir("/data")) == 5
        await asyncio.sleep(65)  # file.delete.delay.ms is a minute
        assert [name for name in stage.disk.listdir("/data") if name.startswith("t")] == []

    lives(story)


def test_sec_l10_the_questions_to_coordinators_count_for_the_whole_node():
    async def story(stage):
        first, second = await stage.create("t"), await stage.create("u")
        for partition in (first, second):
            partition.log.guards.note(7, 0, 0, bumps_epoch=True, now_ms=1000)
        of_node = first.log.guards.of_node
        assert len(of_node) == 2
        await stage.delete("t")
        await asyncio.sleep(1)
        assert len(of_node) == 1

    lives(story)


def test_a_flush_of_a_deleted_log_writes_nothing_into_the_new_ones_directory():
    async def story(stage):
        old = await stage.create()
        await perform(old.log.flush())
        fresh = stage.disk.listdir("/data/t-0")
        stage.append(old)
        old.log.roll(stage.host.clock.wall_ms())  # leaves a producer snapshot to write
        stage.disk.offload_s = (2.0, 2.0)
        stage.node.replicas.flush_due(old)
        await asyncio.sleep(0.1)
        stage.disk.offload_s = (0.001, 0.001)
        await stage.delete()
        await stage.create()
        await asyncio.sleep(5)
        await perform(stage.partition().log.flush())
        assert stage.disk.listdir("/data/t-0") == fresh

    lives(story)


def directory_of(stage, path, topic_id=None):
    stage.disk.mkdir(path)
    stage.disk.write_file(f"{path}/00000000000000000000.log", b"")
    if topic_id is not None:
        stage.disk.write_file(f"{path}/partition.metadata", f"version: 0\ntopic_id: {topic_id}".encode())


LONG = "x" * 249


@pytest.mark.parametrize("name", ["gone-0", "t-1", f"{LONG}-0"])
def test_a_directory_that_the_metadata_does_not_know_is_set_aside(name):
    async def first(stage):
        await stage.create()
        directory_of(stage, f"/data/{name}", "AAAAAAAAAAAAAAAAAAAAAQ")

    async def second(stage):
        names = stage.disk.listdir("/data")
        assert name not in names
        assert "t-0" in names
        [stray] = [other for other in names if other.endswith("-stray")]
        assert stray.startswith(name[:200])
        assert len(stray) <= 255
        assert stage.logged("set a directory aside") == 1

    async def third(stage):
        assert stage.logged("set a directory aside") == 1, "a stray is not looked at again"

    lives(first, second, third)


@pytest.mark.parametrize("metadata", [b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", b"version: 0\n", None])
def test_a_log_that_is_not_surely_this_topics_is_set_aside(metadata):
    async def first(stage):
        partition = await stage.create()
        stage.append(partition, b"of another topic")
        path = "/data/t-0/partition.metadata"
        stage.disk.remove(path)
        if metadata is not None:
            stage.disk.write_file(path, metadata)

    async def second(stage):
        assert bounds(stage.partition()) == (0, 0)
        assert sum(name.endswith("-stray") for name in stage.disk.listdir("/data")) == 1
        assert stage.text("t-0/partition.metadata").endswith(str(stage.partition().topic_id))

    lives(first, second)


def test_a_partition_that_two_log_dirs_have_is_opened_once():
    async def first(stage):
        partition = await stage.create()
        directory_of(stage, "/b/t-0", partition.topic_id)
        stage.append(partition, b"kept")

    async def second(stage):
        assert values_of(stage.partition()) == [b"kept"]
        assert not stage.disk.exists("/b/t-0")

    lives(first, second, log_dirs="/a,/b")


def replicas_on(stage, disk, randomness, logger, log_dirs):
    """Replicas of a node that is not registered, and proposes its ISRs to no controller."""
    return Replicas(
        DynamicConfig(stage.config),
        disk,
        stage.host.clock,
        randomness,
        logger,
        log_dirs,
        ReplicaSignals(),
        broker_epoch=lambda: -1,
        propose_isr=lambda partition, proposal: None,
        note=lambda kind, reason, **facts: None,
        on_all_dirs_failed=print,
        on_task_ended=print,
    )


def hosting(story):
    """Play `story(replicas)` with the replicas of a node on a disk of its own."""
    with World(1) as world:
        stage = Host(world, {})
        stage.disk.mkdir("/data")
        logger = JsonLogger(stage.lines.append, 20)

        async def main():
            log_dirs = [LogDir("/data", Uuid(bytes(16)), clean=False)]
            await story(replicas_on(stage, stage.disk, world.faults, logger, log_dirs))

        world.run(main())


def image_of(*partitions):
    return MetadataImage(topics={"t": TopicImage("t", Uuid(bytes(16)), partitions)})


def test_a_record_counts_only_when_those_in_sync_have_it():
    async def story(replicas):
        seen = []
        for leader_epoch, isr in enumerate([(1, 2), (1,), (2, 1)]):
            await replicas.apply(image_of(PartitionImage((1, 2), isr, 1, leader_epoch, leader_epoch)))
            partition = replicas.partitions["t", 0]
            partition.append(memoryview(bytearray(batch(b"v"))), 1_000)
            seen.append(partition.high_watermark)
        assert seen == [0, 2, 2]

    hosting(story)


def test_a_partition_takes_the_role_that_the_metadata_gives_it():
    async def story(replicas):
        told = []
        replicas.signals.role_changed.subscribe(
            lambda partition: told.append((partition.leads, partition.leader_epoch, partition.gone))
        )
        for epoch, (leader, chosen) in enumerate([(1, (1, 2)), (2, (1, 2)), (-1, (1, 2)), (1, (1, 2)), (2, (2, 3))]):
            await replicas.apply(image_of(PartitionImage(chosen, chosen, leader, epoch, epoch)))
        assert told == [(True, 0, False), (False, 1, False), (False, 2, False), (True, 3, False), (True, 3, True)]
        assert not replicas.partitions
        assert not replicas.partitions_by_id

    hosting(story)


def test_the_image_is_shown_in_the_same_moment_in_which_roles_are_taken():
    async def story(replicas):
        await replicas.apply(image_of(PartitionImage((1, 2), (1, 2), 1, 0, 0)))
        partition = replicas.partitions["t", 0]
        seen = []
        await replicas.apply(
            image_of(PartitionImage((1, 2), (1, 2), 2, 1, 1)), lambda: seen.append(partition.leader_epoch)
        )
        assert (seen, partition.leader_epoch) == ([0], 1), "the image first, so that a refusal can name the new leader"

    hosting(story)


def test_a_link_in_a_log_dir_is_set_aside_and_its_target_stays_as_it_is(tmp_path):
    topic = TopicImage("t", Uuid(bytes(16)), (PartitionImage((1,), (1,), 1, 0, 0),))
    target, link = tmp_path / "elsewhere", tmp_path / "logs" / "t-0"
    for directory in (target, link.parent):
        directory.mkdir()
    link.symlink_to(target)
    (target / "partition.metadata").write_bytes(checkpoints.partition_metadata(str(topic.topic_id)))
    disk, lines = FileDisk(max_open_files=10), []
    with World(1) as world:
        stage = Host(world, {"log.dirs": str(link.parent)})
        log_dirs = [LogDir(str(link.parent), Uuid(bytes(16)), clean=False)]
        logger = JsonLogger(lines.append, 20)

        async def main():
            replicas = replicas_on(stage, disk, world.faults, logger, log_dirs)
            replicas.find(MetadataImage(topics={"t": topic}))

        world.run(main())
    disk.close()
    assert "it is a symbolic link" in lines[0]
    assert [path.name.endswith("-stray") for path in link.parent.iterdir()] == [True]
    assert [path.name for path in target.iterdir()] == ["partition.metadata"]


def test_what_waits_for_deletion_is_removed_at_the_next_start():
    async def first(stage):
        await stage.create()
        await stage.delete()
        directory_of(stage, "/data/not-ours-delete")

    async def second(stage):
        assert [name for name in stage.disk.listdir("/data") if name.endswith("-delete")] == ["not-ours-delete"]

    lives(first, second)


# Leading


def test_a_leader_epoch_rises_with_each_start_and_the_records_stay():
    async def first(stage):
        partition = await stage.create(flush_messages="1")
        stage.append(partition, b"a")
        await asyncio.sleep(0.1)
        assert partition.leader_epoch == 0

    async def second(stage):
        assert stage.partition().leader_epoch > 0
        assert values_of(stage.partition()) == [b"a"]

    lives(first, second)
