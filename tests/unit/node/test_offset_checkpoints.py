"""The offset checkpoints: what a node writes down of its replicas, and takes up again (S12)."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.log import checkpoints
from strandline.metadata.image import PartitionImage
from strandline.node.log_effects import perform
from strandline.node.offset_checkpoints import OffsetCheckpoints
from strandline.replica.partition import Partition

from .conftest import batch, values_of
from .lives import lives

HIGH_WATERMARKS = "replication-offset-checkpoint"


async def filled(stage, count):
    partition = await stage.create()
    for i in range(count):
        stage.append(partition, b"%d" % i)
    await perform(partition.log.flush())
    await stage.node.replicas.checkpoint(stage.log_dir)
    return partition


def reopened(stage, partition, high_watermark, state=None):
    """The same log, as a replica that another node leads."""
    state = state or PartitionImage((2, 1), (2, 1), 2, partition.leader_epoch + 1, 9)
    return Partition(
        "t",
        0,
        partition.topic_id,
        partition.log,
        state,
        stage.node.replicas.dependencies,
        high_watermark=high_watermark,
    )


def test_s12_the_high_watermark_is_read_back_at_the_start():
    async def first(stage):
        await filled(stage, 5)
        assert stage.text(HIGH_WATERMARKS) == "0\n1\nt 0 5\n"

    async def second(stage):
        assert stage.log_dir.high_watermarks == {("t", 0): 5}
        assert stage.partition().high_watermark == 5

    lives(first, second)


@pytest.mark.parametrize(("written", "start", "taken"), [(3, 0, 3), (9, 0, 5), (-1, 0, 0), (1, 4, 4), (0, 0, 0)])
def test_s12_what_was_written_down_is_clamped_to_the_log(written, start, taken):
    async def story(stage):
        partition = await filled(stage, 5)
        partition.delete_records(start)
        assert reopened(stage, partition, written).high_watermark == taken

    lives(story)


def test_s12_a_log_that_lost_its_tail_is_not_believed_beyond_its_end():
    async def first(stage):
        partition = await filled(stage, 5)
        partition.log.truncate_to(3)
        await perform(partition.log.flush())

    async def second(stage):
        assert values_of(stage.partition()) == [b"0", b"1", b"2"]
        assert stage.partition().high_watermark <= 3

    lives(first, second)


def test_a_checkpoint_that_was_damaged_says_nothing():
    async def first(stage):
        await filled(stage, 5)
        stage.disk.write_file(f"/data/{HIGH_WATERMARKS}", b"0\n1\nt 0 ")

    async def second(stage):
        assert values_of(stage.partition()) == [b"0", b"1", b"2", b"3", b"4"]

    lives(first, second)


def test_two_writers_never_meet():
    async def story(stage):
        partition = await stage.create()
        writers = OffsetCheckpoints(stage.disk)
        stage.disk.offload_s = (0.1, 0.1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        first = asyncio.create_task(writers.write("/data", [partition]))
        await asyncio.sleep(0.01)
        stage.append(partition)
        second = asyncio.create_task(writers.write("/data", [partition]))
        await asyncio.gather(first, second)
        assert loop.time() - began >= 0.2
        assert stage.text(HIGH_WATERMARKS) == "0\n1\nt 0 1\n", "the newer one is the last"

    lives(story)


def test_a_follower_writes_down_what_it_knows_to_be_committed():
    async def story(stage):
        partition = await filled(stage, 3)
        follower = reopened(stage, partition, 1)
        follower.log.append_fetched(memoryview(batch_at(3, follower.leader_epoch)), follower.leader_epoch, 1000)
        await OffsetCheckpoints(stage.disk).write("/data", [follower])
        found = checkpoints.read_offsets(stage.disk, f"/data/{HIGH_WATERMARKS}")
        assert found == {("t", 0): 1}

    lives(story)


def batch_at(offset, epoch):
    data = bytearray(batch(b"v"))
    data[:8] = offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return data
