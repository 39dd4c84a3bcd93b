"""Reads of followers, kept for the next one."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api.fetching.shared_reads import SHARED_BYTES_MAX, SharedReads
from strandline.records.batch import BatchBuilder
from strandline.records.header import iterate


@pytest.fixture
def log(broker):
    broker.create("t")
    for _ in range(4):
        broker.append("t", 1000)
    return broker.parts.hosted.by_name["t", 0].log


def offsets(data):
    return [header.base_offset for _, header in iterate(data)]


def test_the_same_read_is_made_once(log):
    reads = SharedReads()
    first = reads.read(log, 1, 1 << 20, min_one=True)
    assert offsets(first) == [1, 2, 3]
    assert reads.read(log, 1, 1 << 20, min_one=True) is first


def test_another_stretch_is_another_read(log):
    reads = SharedReads()
    whole = reads.read(log, 0, 1 << 20, min_one=False)
    size = len(whole) // 4
    assert offsets(reads.read(log, 0, size, min_one=False)) == [0]
    assert offsets(reads.read(log, 2, 1 << 20, min_one=False)) == [2, 3]
    assert reads.read(log, 0, 1, min_one=False) == b""
    assert offsets(reads.read(log, 0, 1, min_one=True)) == [0]
    assert reads.read(log, 0, 1, min_one=False) == b"", "what must be one at least was read for somebody else"


def test_what_was_appended_since_comes_along(broker, log):
    reads = SharedReads()
    reads.read(log, 0, 1 << 20, min_one=True)
    broker.append("t", 1000)
    assert offsets(reads.read(log, 0, 1 << 20, min_one=True)) == [0, 1, 2, 3, 4]


def test_what_was_cut_is_not_given_again(broker, log):
    reads = SharedReads()
    old = reads.read(log, 0, 1 << 20, min_one=True)
    log.truncate_to(3)
    builder = BatchBuilder()
    builder.append(b"k", b"another", timestamp=1000)
    log.append_as_leader(memoryview(builder.build()), 0, 1000)
    new = reads.read(log, 0, 1 << 20, min_one=True)
    assert (offsets(new), b"another" in new, b"another" in old) == ([0, 1, 2, 3], True, False)


def test_two_logs_are_two(broker, log):
    broker.create("u")
    broker.append("u", 1, 2)
    reads = SharedReads()
    reads.read(log, 0, 1 << 20, min_one=True)
    assert offsets(reads.read(broker.parts.hosted.by_name["u", 0].log, 0, 1 << 20, min_one=True)) == [0]


def test_no_more_is_kept_than_there_is_room_for(broker):
    broker.create("big", configs={"max.message.bytes": str(2 * SHARED_BYTES_MAX)})
    partition = broker.parts.hosted.by_name["big", 0]
    for size in (SHARED_BYTES_MAX + 1, *[SHARED_BYTES_MAX // 3] * 4):
        builder = BatchBuilder()
        builder.append(None, bytes(size), timestamp=1000)
        partition.append(memoryview(builder.build()), 1000)
    reads = SharedReads()
    for offset in range(5):
        reads.read(partition.log, offset, 1, min_one=True)
        assert sum(map(len, reads._kept.values())) == reads._bytes <= SHARED_BYTES_MAX
    assert [key[1] for key in reads._kept] == [3, 4], "the newest"
