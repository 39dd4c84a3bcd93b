"""The map from key to newest offset, held against a plain dictionary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.log.compaction.offset_map import OffsetMap, Sifted
from strandline.records.batch import BatchBuilder, decode
from strandline.records.errors import InvalidRecord
from strandline.records.header import RECORDS_AT, BatchHeader, read_header
from strandline.records.record import Record, read_records
from strandline.records.rewrite import retain

KEYS = st.one_of(
    st.none(),
    st.sampled_from([b"", b"a", b"b", b"ab", b"x" * 63, b"x" * 64, b"y" * 64, b"z" * 9000]),
    st.binary(max_size=3),
)
VALUES = st.one_of(st.none(), st.binary(max_size=90), st.just(b"v" * 9000))
TIMES = st.one_of(st.integers(0, 300), st.integers(0, 2**45))
RECORDS = st.lists(st.tuples(KEYS, VALUES, TIMES), min_size=1, max_size=12)


def built(entries: list[Any], base_offset: int) -> bytes:
    builder = BatchBuilder()
    for key, value, timestamp in entries:
        builder.append(key, value, (("h", b"1"),) if value else (), timestamp)
    return bytes(builder.build(base_offset=base_offset))


def sparse(batch: bytes, dropped: set[int]) -> bytes:
    """The batch as an earlier cleaning might have left it."""
    kept = [record for i, record in enumerate(decode(batch)) if i not in dropped]
    return bytes(retain(read_header(batch), kept))


def kept_of(batch: bytes, header: BatchHeader, sifted: Sifted) -> list[Record]:
    payload = b"".join(batch[start:end] for start, end in zip(sifted.spans[::2], sifted.spans[1::2], strict=True))
    header = header._replace(records_count=sifted.records_count)
    return list(read_records(payload, 0, header))


@given(st.lists(RECORDS, min_size=1, max_size=6), st.lists(RECORDS, max_size=3), st.data())
def test_the_newest_of_each_key(noted: list[Any], older: list[Any], data: st.DataObject) -> None:
    offsets = OffsetMap()
    newest: dict[bytes, int] = {}
    batches = []
    offset = 1000
    for entries in noted:
        batch = sparse(built(entries, offset), data.draw(st.sets(st.integers(0, len(entries) - 1))))
        offset += len(entries)
        header = read_header(batch)
        if header.records_count:
            offsets.note(batch, RECORDS_AT, len(batch), header)
            newest |= {record.key: record.offset for record in decode(batch) if record.key is not None}
            batches.append((batch, header))
    offsets.settle()
    assert len(offsets) == len(newest)
    drop = data.draw(st.booleans())
    for batch, header in batches:
        expected = [
            record
            for record in decode(batch)
            if record.key is not None and newest[record.key] == record.offset and not (drop and record.value is None)
        ]
        sifted = offsets.sift_noted(batch, RECORDS_AT, len(batch), header, drop)
        assert kept_of(batch, header, sifted) == expected
        assert sifted.has_tombstones == any(record.value is None for record in expected)
        assert offsets.has_newest_in(header) == any(
            record.key is not None and newest[record.key] == record.offset for record in decode(batch)
        )
    for entries in older:
        batch = built(entries, 0)
        header = read_header(batch)
        expected = [
            record
            for record in decode(batch)
            if record.key is not None and record.key not in newest and not (drop and record.value is None)
        ]
        sifted = offsets.sift_older(batch, RECORDS_AT, len(batch), header, drop)
        assert kept_of(batch, header, sifted) == expected
        assert sifted.has_tombstones == any(record.value is None for record in expected)


def test_a_key_is_not_its_digest() -> None:
    offsets = OffsetMap()
    long = built([(b"k" * 64, b"1", 0)], 0)
    offsets.note(long, RECORDS_AT, len(long), read_header(long))
    (known,) = offsets._newest
    other = built([(known, b"1", 0)], 1)
    offsets.note(other, RECORDS_AT, len(other), read_header(other))
    assert len(offsets) == 2


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_records_that_end_too_early(cut: int) -> None:
    batch = built([(b"key", b"value", 0), (b"key2", b"value", 0)], 0)
    header = read_header(batch)
    offsets = OffsetMap()
    with pytest.raises(InvalidRecord):
        offsets.note(batch[:-cut], RECORDS_AT, len(batch) - cut, header)
    with pytest.raises(InvalidRecord):
        offsets.note(batch, RECORDS_AT, len(batch), header._replace(records_count=3, last_offset_delta=2))
    with pytest.raises(InvalidRecord):
        offsets.note(batch, RECORDS_AT, len(batch), header._replace(records_count=1, last_offset_delta=0))
    offsets.settle()
    with pytest.raises(InvalidRecord):
        OffsetMap().sift_older(batch, RECORDS_AT, len(batch), header._replace(records_count=3), drop_tombstones=False)
