"""The compiled offset map gives the answers of the plain one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.log.compaction import job
from strandline.log.compaction.offset_map import OffsetMap
from strandline.records.errors import InvalidRecord
from strandline.records.header import RECORDS_AT, read_header

from .test_offset_map import RECORDS, built, sparse

pytest.importorskip("numba", reason="the compiled map is for installations with numba (extra `fast`)")


def compiled() -> OffsetMap:
    return job.new_offset_map(job.COMPILED_FROM_BYTES)


@settings(deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=6), st.lists(RECORDS, max_size=3), st.data())
def test_both_agree(noted: list[Any], older: list[Any], data: st.DataObject) -> None:
    maps = [OffsetMap(), compiled()]
    assert type(maps[0]) is not type(maps[1])
    batches = []
    offset = 1000
    for entries in noted:
        batch = sparse(built(entries, offset), data.draw(st.sets(st.integers(0, len(entries) - 1))))
        offset += len(entries)
        if read_header(batch).records_count:
            batches.append(batch)
            for one in maps:
                one.note(batch, RECORDS_AT, len(batch), read_header(batch))
    for one in maps:
        one.settle()
    assert len(maps[0]) == len(maps[1])
    drop = data.draw(st.booleans())
    for batch in batches:
        header = read_header(batch)
        assert maps[0].has_newest_in(header) == maps[1].has_newest_in(header)
        first, second = [one.sift_noted(batch, RECORDS_AT, len(batch), header, drop) for one in maps]
        assert first == second
    for entries in older:
        batch = built(entries, 0)
        first, second = [one.sift_older(batch, RECORDS_AT, len(batch), read_header(batch), drop) for one in maps]
        assert first == second


@settings(deadline=None)
@given(RECORDS, st.integers(0, 2**16), st.integers(0, 7))
def test_bytes_that_are_no_records_are_refused_or_read_within_their_bounds(entries: Any, at: int, bit: int) -> None:
    batch = bytearray(built(entries, 0))
    position = RECORDS_AT + at % (len(batch) - RECORDS_AT)
    batch[position] ^= 1 << bit
    header = read_header(batch)
    offsets = compiled()
    try:
        offsets.note(bytes(batch), RECORDS_AT, len(batch), header)
        offsets.settle()
        sifted = offsets.sift_older(bytes(batch), RECORDS_AT, len(batch), header, drop_tombstones=False)
    except InvalidRecord:
        return
    assert all(RECORDS_AT <= span <= len(batch) for span in sifted.spans)


def test_it_grows() -> None:
    offsets = compiled()
    for i in range(300):
        batch = built([(b"key %d" % (i * 50 + j), b"value", j) for j in range(50)], i * 50)
        offsets.note(batch, RECORDS_AT, len(batch), read_header(batch))
    assert len(offsets) == 15_000
    assert offsets.is_full(15_000)
    assert not offsets.is_full(15_001)
    long = built([(b"k" * 5_000_000, b"", 0)], 20_000)
    offsets.note(long, RECORDS_AT, len(long), read_header(long))
    assert offsets.is_full(30_000)


def test_small_jobs_do_without() -> None:
    assert type(job.new_offset_map(job.COMPILED_FROM_BYTES - 1)) is OffsetMap
