"""A node's regular work, one run of a job at a time, and on a node that runs it by itself."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

from strandline.log import checkpoints
from strandline.log.verification_guards import NOT_REQUIRED
from strandline.node.maintenance import Maintenance
from strandline.records.batch import BatchBuilder
from strandline.runtime.logging import JsonLogger
from strandline.sim.faults import Fault

from .lives import lives

SMALL = {"internal_segment_bytes": "100"}
"""One batch fills a segment."""


def jobs_of(stage):
    return Maintenance(stage.node.replicas, stage.host.clock, JsonLogger(stage.lines.append, 20))


def log_files(stage, suffix=".log"):
    return [int(name[:20]) for name in stage.disk.listdir("/data/t-0") if name.endswith(suffix)]


# Retention


def test_segments_go_by_age():
    async def story(stage):
        partition = await stage.create(retention_ms="60000", **SMALL)
        now_ms = stage.host.clock.wall_ms()
        for age_ms in (90_000, 70_000, 50_000, 0):
            stage.append(partition, timestamp=now_ms - age_ms)
        await jobs_of(stage).delete_old_segments()
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (2, 4)
        assert log_files(stage) == [2, 3]
        stage.host.clock.jump(100_000)
        await jobs_of(stage).delete_old_segments()
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (4, 4)

    lives(story)


def test_txn_p33_segments_go_with_the_beginning_of_an_open_transaction():
    """They go by the high watermark. Readers of committed records wait at the log start, and its marker still ends it."""

    async def story(stage):
        partition = await stage.create(retention_ms="60000", **SMALL)
        now_ms = stage.host.clock.wall_ms()
        for sequence, age_ms in enumerate((90_000, 70_000, 0)):
            builder = BatchBuilder()
            builder.append(None, b"v", timestamp=now_ms - age_ms)
            data = builder.build(producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)
            partition.append(memoryview(data), now_ms, guard=NOT_REQUIRED)
        assert (partition.last_stable_offset, partition.high_watermark) == (0, 3)
        await jobs_of(stage).delete_old_segments()
        assert (partition.log.log_start_offset, partition.last_stable_offset) == (2, 2)
        partition.append_marker((7, 1), False, 0, now_ms, transaction_version=2)
        assert partition.last_stable_offset == partition.high_watermark == 4
        assert [aborted.first_offset for aborted in partition.log.aborted_between(2, 4)] == [0]

    lives(story)


def test_segments_go_by_size():
    async def story(stage):
        partition = await stage.create(retention_bytes="200", **SMALL)
        for _ in range(6):
            stage.append(partition)
        batch_bytes = partition.log.size // 6
        assert 67 <= batch_bytes < 100
        await jobs_of(stage).delete_old_segments()
        assert partition.log.log_start_offset == 3, "what is more than the limit goes, what would go below it stays"

    lives(story)


def test_nothing_goes_above_the_high_watermark():
    async def story(stage):
        partition = await stage.create(retention_ms="1", flush_messages="1", **SMALL)
        stage.append(partition, timestamp=1)
        await asyncio.sleep(0.1)
        stage.flushes_take(10)
        stage.append(partition, timestamp=1)
        await jobs_of(stage).delete_old_segments()
        assert (partition.high_watermark, partition.log.log_start_offset) == (1, 1)

    lives(story)


def test_a_running_node_deletes_by_itself_and_removes_the_files_later():
    async def story(stage):
        partition = await stage.create(retention_ms="1000", file_delete_delay_ms="5000", **SMALL)
        for _ in range(3):
            stage.append(partition)
        await asyncio.sleep(29)
        assert partition.log.log_start_offset == 0
        await asyncio.sleep(2)  # log.initial.task.delay.ms is 30 seconds
        assert partition.log.log_start_offset == 3
        assert stage.logged("deleted old segments") == 1
        assert log_files(stage, ".log.deleted") == [0, 1, 2]
        await asyncio.sleep(7)
        assert log_files(stage, ".deleted") == []

    lives(story)


def test_a_disk_that_does_not_delete_takes_its_log_dir_offline():
    async def story(stage):
        partition = await stage.create(retention_ms="1", **SMALL)
        stage.append(partition, timestamp=1)
        stage.disk.faults.set("/data/t-0", Fault.WRITE_ERROR)
        await jobs_of(stage).delete_old_segments()
        assert partition.offline
        assert not stage.log_dir.online

    lives(story)


# Flushes by time


def test_flush_ms_goes_by_the_monotonic_clock():
    async def story(stage):
        partition = await stage.create(flush_ms="500")
        log, jobs = partition.log, jobs_of(stage)
        stage.append(partition)
        stage.node.replicas.flush_due(partition)
        await asyncio.sleep(0.1)
        stage.append(partition)
        for wall_ms in (3_600_000, -7_200_000):
            stage.host.clock.jump(wall_ms)
            await jobs.flush_by_time()
            await asyncio.sleep(0.1)
            assert log.recovery_point == 1
        await asyncio.sleep(0.3)
        await jobs.flush_by_time()
        await asyncio.sleep(0.1)
        assert log.recovery_point == 2

    lives(story, log_flush_scheduler_interval_ms="100000")


def test_without_flush_ms_time_flushes_nothing():
    async def story(stage):
        partition = await stage.create()
        stage.append(partition)
        await asyncio.sleep(1)  # the leader epoch that began with it is brought to the device
        stage.append(partition)
        await asyncio.sleep(100)
        assert partition.log.recovery_point == 1

    lives(story)


# Checkpoints


def test_checkpoints_are_written_where_something_changed():
    async def story(stage):
        partition = await stage.create()
        jobs, path = jobs_of(stage), f"/data/{checkpoints.REPLICATION_OFFSET_CHECKPOINT}"
        await jobs.write_checkpoints()
        stage.disk.remove(path)
        await jobs.write_checkpoints()
        assert not stage.disk.exists(path)
        stage.append(partition)
        await jobs.write_checkpoints()
        assert stage.text(checkpoints.REPLICATION_OFFSET_CHECKPOINT) == "0\n1\nt 0 1\n"

    lives(story)


def test_a_running_node_writes_checkpoints_at_the_shortest_interval():
    async def story(stage):
        stage.append(await stage.create())
        await asyncio.sleep(0.9)
        assert stage.text(checkpoints.REPLICATION_OFFSET_CHECKPOINT) == "0\n1\nt 0 1\n"

    lives(story, replica_high_watermark_checkpoint_interval_ms="800")


# Producers


def test_silent_producers_are_forgotten():
    async def story(stage):
        partition, now_ms = await stage.create(), stage.host.clock.wall_ms()
        for producer_id, age_ms in ((5, 90_000), (6, 10_000)):
            builder = BatchBuilder()
            builder.append(None, b"v", timestamp=now_ms - age_ms)
            data = builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=0)
            partition.append(memoryview(data), now_ms)
        await jobs_of(stage).forget_producers()
        assert list(partition.log.producers.by_id) == [6]

    lives(story, producer_id_expiration_ms="60000")
