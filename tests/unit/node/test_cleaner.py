"""The cleaner on a node that runs it by itself: when, what, how far, and what ends it."""

# mypy: disable-error-code="arg-type, func-returns-value, misc, redundant-expr, union-attr"

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable
from typing import Any

import pytest

from strandline.log import checkpoints
from strandline.log.verification_guards import NOT_REQUIRED
from strandline.node import cleaner
from strandline.node.running import NodeFailed
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import iterate
from strandline.replica.partition import Partition
from strandline.sim.faults import Fault
from strandline.wire import messages

from .lives import Host, lives

COMPACTED = {"cleanup_policy": "compact", "internal_segment_bytes": "400", "min_cleanable_dirty_ratio": "0.1"}
"""A few batches fill a segment."""
SOON = {"log_cleaner_backoff_ms": "1000"}
CHECKPOINT = f"/data/{checkpoints.CLEANER_OFFSET_CHECKPOINT}"


def put(stage: Host, partition: Partition, key: str, value: str | None) -> None:
    now_ms = stage.host.clock.wall_ms()
    builder = BatchBuilder()
    builder.append(key.encode(), None if value is None else value.encode(), timestamp=now_ms)
    partition.append(memoryview(bytearray(builder.build())), now_ms)


def fill(stage: Host, partition: Partition, rounds: int = 20, first: int = 0) -> None:
    for number in range(first, first + rounds):
        for key in "abc":
            put(stage, partition, key, f"{key}{number}")


def records(partition: Partition) -> list[tuple[int, str, str | None]]:
    found = []
    for segment in partition.log.segments:
        data = memoryview(segment.file.read_blocking(0, segment.size))
        for at, header in iterate(data):
            for record in decode(data[at : at + header.size_bytes]):
                assert record.key is not None
                value = None if record.value is None else bytes(record.value).decode()
                found.append((record.offset, bytes(record.key).decode(), value))
    return found


def below(partition: Partition, offset: int) -> list[tuple[int, str, str | None]]:
    return [record for record in records(partition) if record[0] < offset]


def newest(partition: Partition) -> dict[str, str | None]:
    return {key: value for _, key, value in records(partition)}


def clean_offset(stage: Host, topic: str = "t") -> int | None:
    return checkpoints.read_offsets(stage.disk, CHECKPOINT).get((topic, 0))


def leftovers(stage: Host) -> list[str]:
    return [name for name in stage.disk.listdir("/data/t-0") if name.endswith((".cleaned", ".swap"))]


def kinds(stage: Host) -> list[str]:
    return [event.kind for event in stage.node.parts.events.since(0)]


def test_the_last_value_of_each_key_stays_and_offsets_are_kept() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        before, size = {offset: (key, value) for offset, key, value in records(partition)}, partition.log.size
        await asyncio.sleep(3)
        active = partition.log.segments.active.base_offset
        assert len(below(partition, active)) == 3
        assert all(before[offset] == (key, value) for offset, key, value in records(partition))
        assert newest(partition) == {"a": "a19", "b": "b19", "c": "c19"}
        assert partition.log.size < size / 3
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (0, 60)
        assert clean_offset(stage) == active
        [compacted] = [event for event in stage.node.parts.events.since(0) if event.kind == "compacted"]
        assert (compacted.topic, compacted.partition) == ("t", 0)
        assert compacted.facts["end_offset"] == active
        assert compacted.facts["records_read"] > compacted.facts["records_written"] == 3
        stats = stage.node.broker_server.cleaner.stats
        assert stats.cleanings == 1
        assert stats.bytes_read > stats.bytes_written > 0

    lives(story, **SOON)


def test_txn_p32_it_ends_where_a_transaction_is_open() -> None:
    """Its records may be aborted yet: they must not take the place of what came before."""

    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        begun, now_ms = partition.log.log_end_offset, stage.host.clock.wall_ms()
        builder = BatchBuilder()
        builder.append(b"a", b"of a transaction", timestamp=now_ms)
        data = builder.build(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        partition.append(memoryview(data), now_ms, guard=NOT_REQUIRED)
        fill(stage, partition, first=20)
        assert (partition.last_stable_offset, partition.high_watermark) == (begun, 2 * begun + 1)
        await asyncio.sleep(3)
        cleaned_to = clean_offset(stage)
        assert cleaned_to is not None
        assert 0 < cleaned_to <= begun
        assert (
            len([offset for offset, _, _ in records(partition) if offset >= cleaned_to]) == 2 * begun + 1 - cleaned_to
        )
        partition.append_marker((7, 1), False, 0, now_ms, transaction_version=2)
        fill(stage, partition, first=40)
        await asyncio.sleep(3)
        assert (clean_offset(stage) or 0) > begun
        assert newest(partition)["a"] == "a59"
        assert not any(value == "of a transaction" for _, _, value in records(partition))

    lives(story, **SOON)


def test_the_old_files_go_after_a_while() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED, file_delete_delay_ms="5000")
        fill(stage, partition)
        await asyncio.sleep(3)
        names = stage.disk.listdir("/data/t-0")
        assert any(name.endswith(".deleted") for name in names)
        await asyncio.sleep(10)
        assert not any(name.endswith(".deleted") for name in stage.disk.listdir("/data/t-0"))
        assert leftovers(stage) == []

    lives(story, **SOON)


def test_it_goes_on_where_it_was_after_a_kill() -> None:
    ends: list[int] = []

    async def first(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        ends.append(partition.log.segments.active.base_offset)

    async def second(stage: Host) -> None:
        partition = stage.partition()
        assert stage.log_dir.clean_offsets == {("t", 0): ends[0]}
        assert newest(partition) == {"a": "a19", "b": "b19", "c": "c19"}
        fill(stage, partition, first=20)
        await asyncio.sleep(3)
        assert clean_offset(stage) == partition.log.segments.active.base_offset > ends[0]
        assert len(below(partition, partition.log.segments.active.base_offset)) == 3

    lives(first, second, **SOON)


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_node_that_dies_while_it_cleans_begins_anew(power_loss: bool) -> None:
    async def first(stage: Host) -> None:
        partition = await stage.create(**COMPACTED, flush_messages="1")
        fill(stage, partition)
        await comes_true(lambda: bool(leftovers(stage)))
        assert stage.node.broker_server.cleaner.is_cleaning(partition)
        assert clean_offset(stage) is None

    async def second(stage: Host) -> None:
        assert leftovers(stage) == []
        partition = stage.partition()
        assert len(records(partition)) == 60

    # So slowly that it takes several seconds.
    lives(first, second, power_loss=power_loss, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_truncation_ends_it_and_what_is_cut_is_not_clean() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(2)
        working = stage.node.broker_server.cleaner
        assert working.is_cleaning(partition)
        partition.truncate(3, "a test")
        await asyncio.sleep(0.5)
        assert not working.is_cleaning(partition)
        assert leftovers(stage) == []
        assert len(records(partition)) == 3
        assert stage.logged("the log was truncated") == 1
        stage.log_dir.clean_offsets["t", 0] = 2
        partition.truncate(1, "a test")
        assert stage.log_dir.clean_offsets["t", 0] == 1

    lives(story, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_one_that_is_ended_before_it_began_is_over_too() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        working = stage.node.broker_server.cleaner
        working._start_due(working._compacted())
        assert working.is_cleaning(partition)
        partition.truncate(3, "a test")
        await asyncio.sleep(0.5)
        assert not working.is_cleaning(partition)

    lives(story)


def test_deleting_the_topic_ends_it_and_the_next_of_that_name_starts_dirty() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        stage.log_dir.clean_offsets["t", 0] = 5
        assert stage.node.broker_server.cleaner.is_cleaning(partition)
        await stage.delete()
        assert not stage.node.broker_server.cleaner.is_cleaning(partition)
        again = await stage.create(**COMPACTED)
        assert stage.log_dir.clean_offsets == {}
        assert clean_offset(stage) is None
        await asyncio.sleep(100)
        assert again.log.size == 0
        assert stage.disk.listdir("/data/t-0") == stage.disk.listdir(again.log.directory)
        assert leftovers(stage) == []

    lives(story, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_a_stop_ends_it() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        assert stage.node.broker_server.cleaner.is_cleaning(partition)
        await asyncio.wait_for(stage.node.stop(), 10)
        names = stage.disk.listdir("/data/t-0")
        await asyncio.sleep(100)
        assert stage.disk.listdir("/data/t-0") == names

    lives(story, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_retention_waits_for_it_and_deletes_then() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED | {"cleanup_policy": "compact,delete", "retention_bytes": "400"})
        fill(stage, partition)
        await asyncio.sleep(7)
        assert stage.node.broker_server.cleaner.is_cleaning(partition)
        assert partition.log.log_start_offset == 0
        await asyncio.sleep(60)
        assert not stage.node.broker_server.cleaner.is_cleaning(partition)
        assert partition.log.log_start_offset > 0
        assert stage.log_dir.online

    often = {"log_initial_task_delay_ms": "2000", "log_retention_check_interval_ms": "2000"}
    lives(story, **SOON, **often, log_cleaner_io_max_bytes_per_second="500")


def test_nobody_looks_while_nothing_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: Host) -> None:
        await stage.create()
        await asyncio.sleep(1)
        looks: list[float] = []
        working = stage.node.broker_server.cleaner
        found = working._compacted
        monkeypatch.setattr(working, "_compacted", lambda: looks.append(stage.world.now) or found())
        await asyncio.sleep(60)
        assert looks == []
        assert working.stats.looked_at_ms == 0
        partition = await stage.create("compacted", **COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        assert working.stats.cleanings == 1
        await stage.delete("compacted")
        await asyncio.sleep(5)
        looks.clear()
        await asyncio.sleep(60)
        assert looks == []

    lives(story, **SOON)


def test_a_topic_becomes_compacted_while_it_is_there() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(internal_segment_bytes="400", min_cleanable_dirty_ratio="0.1")
        fill(stage, partition)
        await asyncio.sleep(5)
        assert len(records(partition)) == 60
        await alter(stage, 2, "t", "cleanup.policy", "compact")
        await asyncio.sleep(5)
        assert len(records(partition)) < 10

    lives(story, **SOON)


def test_the_number_of_cleanings_and_their_pace_change_while_it_runs() -> None:
    async def story(stage: Host) -> None:
        one, other = await stage.create("one", **COMPACTED), await stage.create("other", **COMPACTED)
        fill(stage, one, 10)
        fill(stage, other, 40)
        await asyncio.sleep(30)
        working = stage.node.broker_server.cleaner
        assert not working.is_cleaning(one)
        assert not working.is_cleaning(other)
        await alter(stage, 4, "", "log.cleaner.io.max.bytes.per.second", "100")
        await alter(stage, 4, "", "log.cleaner.threads", "1")
        await asyncio.sleep(2)
        assert (working.is_cleaning(one), working.is_cleaning(other)) != (True, True)
        await alter(stage, 4, "", "log.cleaner.threads", "2")
        await asyncio.sleep(2)
        assert (working.is_cleaning(one), working.is_cleaning(other)) == (True, True)

    lives(story, **SOON, log_cleaner_threads="0")


def test_without_it_nothing_is_cleaned() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(60)
        assert len(records(partition)) == 60
        assert stage.logged("log.cleaner.enable=false") == 1

    lives(story, **SOON, log_cleaner_enable="false")


def test_a_process_that_ends_is_tried_again_and_after_the_third_time_no_more() -> None:
    async def story(stage: Host) -> None:
        stage.disk.niced_lost_probability = 1.0
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(1.9)
        working = stage.node.broker_server.cleaner
        assert stage.logged("cleaning was cut short") >= 1
        assert working.uncleanable == {}
        await asyncio.sleep(10)
        assert stage.logged("cleaning was cut short") == 2
        assert list(working.uncleanable) == [partition]
        assert stage.logged("log can't be cleaned") == 1
        stage.disk.niced_lost_probability = 0.0
        await asyncio.sleep(60)
        assert len(records(partition)) == 60
        assert stage.log_dir.online
        await stage.delete()
        assert working.uncleanable == {}

    lives(story, **SOON)


def test_one_loss_is_forgotten_once_it_worked() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        working = stage.node.broker_server.cleaner
        for number in range(4):
            stage.disk.niced_lost_probability = 1.0
            fill(stage, partition, first=20 * number)
            await comes_true(lambda number=number: stage.logged("cleaning was cut short") > number)
            stage.disk.niced_lost_probability = 0.0
            await asyncio.sleep(4)
            assert working.stats.cleanings == number + 1
        assert working.uncleanable == {}

    lives(story, **SOON)


def test_a_full_disk_is_no_broken_one() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(0.5)  # what was rolled is flushed
        stage.disk.faults.set("/data/t-0", Fault.FULL)
        await asyncio.sleep(4)
        assert stage.logged("no room to clean a log") > 0
        assert stage.log_dir.online
        stage.disk.faults.clear()
        await asyncio.sleep(4)
        assert newest(partition) == {"a": "a19", "b": "b19", "c": "c19"}
        assert stage.node.broker_server.cleaner.stats.cleanings == 1

    lives(story, **SOON)


def test_a_swap_that_is_cut_short_takes_its_log_dir_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def swap(*_: object) -> list[str]:
        raise OSError(errno.ENOSPC, "a name takes room too")

    monkeypatch.setattr(cleaner, "swap", swap)

    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(4)
        assert not stage.log_dir.online

    lives(story, **SOON)


def test_a_disk_that_fails_takes_its_log_dir_offline() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        stage.disk.faults.set("/data/t-0", Fault.READ_ERROR)
        await asyncio.sleep(4)
        assert not stage.log_dir.online

    lives(story, **SOON)


def test_a_disk_that_fails_at_a_roll_is_no_failure_of_the_node() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED, max_compaction_lag_ms="5000")
        put(stage, partition, "a", "1")
        await asyncio.sleep(2)
        stage.disk.faults.set("/data/t-0", Fault.WRITE_ERROR)
        await asyncio.sleep(10)
        assert not stage.log_dir.online
        assert stage.logged("a part of the node failed") == 0

    lives(story, **SOON)


def test_a_log_whose_transactions_cannot_be_read_is_left_alone() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        with contextlib.closing(stage.disk.open("/data/t-0/rotten", create=True)) as rotten:
            rotten.append(b"x")
        index = partition.log.segments[0].txn_index
        index._file = stage.disk.open("/data/t-0/rotten")
        await asyncio.sleep(4)
        assert list(stage.node.broker_server.cleaner.uncleanable) == [partition]
        assert stage.logged("a part of the node failed") == 0
        assert stage.log_dir.online

    lives(story, **SOON)


def test_a_log_dir_that_fails_ends_it() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        working = stage.node.broker_server.cleaner
        assert working.is_cleaning(partition)
        with contextlib.suppress(NodeFailed):
            stage.node.replicas.dir_failed(stage.log_dir, OSError("a test"))
        await asyncio.sleep(2)
        assert not working.is_cleaning(partition)
        assert stage.logged("the log dir is offline") == 1

    lives(story, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_a_topic_that_is_compacted_no_more_ends_it() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        await asyncio.sleep(3)
        assert stage.node.broker_server.cleaner.is_cleaning(partition)
        await alter(stage, 2, "t", "cleanup.policy", "delete")
        await asyncio.sleep(2)
        assert not stage.node.broker_server.cleaner.is_cleaning(partition)
        assert leftovers(stage) == []
        assert len(records(partition)) == 60

    lives(story, **SOON, log_cleaner_io_max_bytes_per_second="1000")


def test_what_is_written_to_is_cleaned_too_once_it_is_overdue() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED, max_compaction_lag_ms="5000")
        fill(stage, partition)
        await asyncio.sleep(20)
        assert [(key, value) for _, key, value in records(partition)] == [("a", "a19"), ("b", "b19"), ("c", "c19")]
        assert clean_offset(stage) == partition.log.recovery_point == 60

    lives(story, **SOON)


def test_more_keys_than_there_is_memory_for_take_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "KEY_BYTES", 1 << 18)

    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        for number in range(2):
            for key in "abcdefghijklmno":
                put(stage, partition, key, f"{key}{number}")
        await asyncio.sleep(30)
        assert stage.node.broker_server.cleaner.stats.cleanings > 2
        active = partition.log.segments.active.base_offset
        assert clean_offset(stage) == active
        keys = [key for _, key, _ in below(partition, active)]
        assert len(keys) == len(set(keys))
        assert newest(partition) == {key: f"{key}1" for key in "abcdefghijklmno"}

    lives(story, **SOON, log_cleaner_dedupe_buffer_size=str(1 << 20))


def test_a_rotten_batch_is_told_and_the_log_tried_again() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create(**COMPACTED)
        fill(stage, partition)
        stage.disk.flip_bit("/data/t-0/00000000000000000000.log", 70)
        await asyncio.sleep(4)
        assert "corrupt batch" in kinds(stage)
        assert stage.log_dir.online
        assert stage.node.broker_server.cleaner.uncleanable == {}
        assert leftovers(stage) == []

    lives(story, **SOON)


async def comes_true(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it does not come true")


async def alter(stage: Host, resource_type: int, name: str, key: str, value: str) -> None:
    kind: Any = messages.request(44)
    config = kind.AlterableConfig(name=key, config_operation=0, value=value)
    resource = kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[config])
    reply = await stage.call(44, 1, kind(resources=[resource], validate_only=False))
    assert reply.responses[0].error_code == 0, reply
    await asyncio.sleep(0.2)
