"""A partition: how far it may be read, and who is told when that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.replica.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from strandline.runtime.disk import FileDisk

NOW = 1_700_000_000_000


class Stage:
    """A partition whose flushes happen when the story says so."""

    def __init__(self, disk: FileDisk, root: str, flush_messages: int, leader_epoch: int = 5) -> None:
        log = load(disk, root, replace(TopicConfig.build(), flush_messages=flush_messages), clean=True).log
        self.due = 0
        self.told: list[Any] = []
        self.partition = Partition("t", 0, Uuid(bytes(16)), log, leader_epoch, self._flush_due)

    def _flush_due(self, partition: Partition) -> None:
        assert partition is self.partition
        self.due += 1

    def flush(self) -> bool:
        asyncio.run(self.partition.log.flush())
        return self.partition.after_flush(NOW)

    def append(self, count: int = 1, **fields: Any) -> int:
        builder = BatchBuilder()
        for _ in range(count):
            builder.append(b"k", b"v", timestamp=NOW)
        return self.partition.append(memoryview(builder.build(**fields)), NOW).base_offset

    def wait(self, end_offset: int) -> None:
        self.partition.when_committed(end_offset, lambda code: self.told.append((end_offset, code)))


class Reader:
    def __init__(self, told: list[Any], name: str) -> None:
        self.told = told
        self.name = name

    def wake(self, partition: Partition, new_bytes: int) -> None:
        self.told.append((self.name, new_bytes))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[[int], Stage]]:
    disk = FileDisk(max_open_files=64)
    yield lambda flush_messages=2**63 - 1: Stage(disk, str(tmp_path / "t-0"), flush_messages)
    disk.close()


def test_without_flush_messages_an_append_is_committed_at_once(stage: Callable[..., Stage]) -> None:
    story = stage()
    story.append(3)
    assert (story.partition.local_end, story.partition.high_watermark) == (3, 3)
    story.wait(3)
    assert story.told == [(3, ErrorCode.NONE)]


def test_with_flush_messages_1_nothing_counts_before_its_flush(stage: Callable[..., Stage]) -> None:
    story = stage(1)
    story.append(2)
    story.append()
    assert (story.due, story.partition.high_watermark) == (2, 0)
    story.wait(2)
    story.wait(3)
    assert story.told == []
    assert story.flush() is False
    assert story.partition.high_watermark == 3
    assert story.told == [(2, ErrorCode.NONE), (3, ErrorCode.NONE)]


def test_what_came_during_a_flush_waits_for_the_next(stage: Callable[..., Stage]) -> None:
    story = stage(1)
    story.append()
    story.wait(1)

    async def flush_while_appending() -> None:
        flushing = asyncio.create_task(story.partition.log.flush())
        await asyncio.sleep(0)
        story.append()
        story.wait(2)
        await flushing

    asyncio.run(flush_while_appending())
    assert story.partition.after_flush(NOW) is True
    assert story.partition.high_watermark == 1
    assert story.told == [(1, ErrorCode.NONE)]
    assert story.flush() is False
    assert story.told[1:] == [(2, ErrorCode.NONE)]


def test_with_flush_messages_3_up_to_two_count_without_a_flush(stage: Callable[..., Stage]) -> None:
    story = stage(3)
    story.append(2)
    assert story.partition.high_watermark == 2
    story.append()
    assert story.partition.high_watermark == 2
    story.flush()
    assert story.partition.high_watermark == 3
    story.append(2)
    assert story.partition.high_watermark == 5


def test_writers_are_told_in_order_and_only_once(stage: Callable[..., Stage]) -> None:
    story = stage(1)
    for end_offset in (1, 2, 3):
        story.append()
        story.wait(end_offset)
    story.partition.vouch_for(2)
    assert story.told == [(1, ErrorCode.NONE), (2, ErrorCode.NONE)]
    story.partition.vouch_for(1)
    story.partition.vouch_for(3)
    assert story.told == [(1, ErrorCode.NONE), (2, ErrorCode.NONE), (3, ErrorCode.NONE)]
    assert story.partition.high_watermark == 3


def test_the_high_watermark_passes_nothing_that_is_not_vouched_for(stage: Callable[..., Stage]) -> None:
    story = stage(1)
    story.append()
    with pytest.raises(AssertionError):
        story.partition.advance_high_watermark(1)


def test_readers_hear_of_new_bytes_when_they_may_read_them(stage: Callable[..., Stage]) -> None:
    story = stage(1)
    first, second = Reader(story.told, "first"), Reader(story.told, "second")
    story.partition.readers = {first: None, second: None}
    story.append()
    assert story.told == []
    story.flush()
    size = story.partition.log.size
    assert story.told == [("first", size), ("second", size)]


@pytest.mark.parametrize("how", ["stop", "fail"])
def test_whoever_waits_is_told_that_it_is_over(stage: Callable[..., Stage], how: str) -> None:
    story = stage(1)
    story.append()
    story.wait(1)
    story.wait(2)
    story.partition.readers[Reader(story.told, "reader")] = None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if how == "stop" else ErrorCode.KAFKA_STORAGE_ERROR
    story.partition.stop(code) if how == "stop" else story.partition.fail()
    assert story.told == [(1, code), (2, code), ("reader", -1)]
    assert not story.partition.readers
    story.flush()
    assert len(story.told) == 3


def test_a_failed_log_dir_serves_nobody(stage: Callable[..., Stage]) -> None:
    story = stage()
    story.append()
    story.partition.fail()
    for attempt in (story.append, story.partition.check_online, lambda: story.partition.delete_records(0)):
        with pytest.raises(KafkaError) as error:
            attempt()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert story.partition.log.log_end_offset == 1


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_client_that_knows_another_epoch_is_told(
    stage: Callable[..., Stage], epoch: int, code: ErrorCode | None
) -> None:
    partition = stage().partition
    if code is None:
        partition.check_leader_epoch(epoch)
        return
    with pytest.raises(KafkaError) as error:
        partition.check_leader_epoch(epoch)
    assert error.value.code is code


def test_a_new_leader_epoch_begins_at_the_log_end(stage: Callable[..., Stage]) -> None:
    assert stage().partition.log.epochs.entries == [(5, 0)]


def test_a_flush_that_ends_after_leadership_went_commits_nothing(stage: Callable[..., Stage]) -> None:
    story = stage(flush_messages=1)
    story.append()
    story.wait(1)
    story.partition.follow(6)
    story.flush()
    assert story.partition.high_watermark == 0
    assert story.told == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    story.partition.lead(7)
    assert story.partition.high_watermark == 1


def test_readers_of_committed_records_stop_at_an_open_transaction(stage: Callable[..., Stage]) -> None:
    story = stage()
    story.append()
    story.append(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    story.append()
    partition = story.partition
    assert (partition.readable_end(READ_UNCOMMITTED), partition.readable_end(READ_COMMITTED)) == (3, 1)
    builder = BatchBuilder()
    builder.append(control_key(ControlRecordType.COMMIT), end_txn_marker(0), timestamp=NOW)
    marker = builder.build(producer_id=1, producer_epoch=0, transactional=True, control=True)
    assert partition.append_own(marker, NOW) == 3
    assert partition.readable_end(READ_COMMITTED) == 4


@pytest.mark.parametrize(("asked", "start"), [(0, 0), (2, 2), (3, 3), (-1, 3)])
def test_records_are_deleted_up_to_the_high_watermark(stage: Callable[..., Stage], asked: int, start: int) -> None:
    story = stage()
    story.append(3)
    assert story.partition.delete_records(asked) == start
    assert story.partition.delete_records(0) == start


@pytest.mark.parametrize("asked", [-2, 4])
def test_records_beyond_the_high_watermark_are_not(stage: Callable[..., Stage], asked: int) -> None:
    story = stage(1)
    story.append(3)
    story.flush()
    story.append()
    with pytest.raises(KafkaError) as error:
        story.partition.delete_records(asked)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_is_taken_that_would_not_outlive_a_move_of_the_leader(stage: Callable[..., Stage]) -> None:
    on = stage(1000)
    on.append()
    on.partition.is_held = True
    with pytest.raises(KafkaError, match="copying to them is still to come") as refused:
        on.append()
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert on.partition.log.log_end_offset == 1
    on.partition.is_held = False
    on.append()
