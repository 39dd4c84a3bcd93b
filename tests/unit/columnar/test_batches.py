"""Which batches of a fetch are shown."""

from __future__ import annotations

import re

import pytest

from strandline.columnar.batches import BatchSource, FetchedBatches
from strandline.errors import ErrorCode
from strandline.records import header as layout
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType
from strandline.records.errors import CorruptRecord
from tests.unit.columnar.logs import WAYS, compacted, counted, marker, read, resealed, transactional

SOURCE = BatchSource("t", 0, True, 1 << 20)


def bases(data: bytes, start: int = 0, end: int = 100, aborted: list[tuple[int, int]] | None = None) -> list[int]:
    return [opened.header.base_offset for opened in FetchedBatches(SOURCE, data, start, end, aborted)]


def test_only_batches_with_offsets_in_the_range() -> None:
    data = counted(0, 5) + counted(5, 5) + counted(10, 5) + counted(15, 5)[:-1]
    assert bases(data) == [0, 5, 10]
    assert bases(data, 4, 10) == [0, 5]
    assert bases(data, 5, 11) == [5, 10]
    assert bases(data, 15, 20) == []


@pytest.mark.parametrize(
    ("position", "flag"),
    [
        (layout.ATTRIBUTES_AT + 1, layout.CONTROL_FLAG),
        (layout.ATTRIBUTES_AT + 1, layout.TRANSACTIONAL_FLAG),
        (layout.LAST_OFFSET_DELTA_AT, 0x80),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_flipped_bit_does_not_hide_a_batch(way: str, position: int, flag: int) -> None:
    """As a control batch, as a part of an aborted transaction, as one before the start."""
    broken = bytearray(counted(5, 5, producer_id=1, producer_epoch=0, base_sequence=0))
    broken[position] ^= flag
    data = counted(0, 5) + bytes(broken) + counted(10, 5)
    found = read(way, data, 3, 100, [(1, 5)])
    assert [row["offset"] for row in found.rows] == [3, 4]
    assert found.error is not None
    assert re.search(r"t-3: the batch at offset 5 .* carries CRC", found.error)


def test_aborted_transactions_are_hidden_from_read_committed_only() -> None:
    data = (
        transactional(0, 2, producer_id=1)
        + transactional(2, 2, producer_id=2)
        + marker(4, 1, ControlRecordType.ABORT)
        + transactional(5, 1, producer_id=1)
        + marker(6, 2, ControlRecordType.COMMIT)
        + marker(7, 1, ControlRecordType.COMMIT)
        + counted(8, 1)
    )
    assert bases(data) == [0, 2, 5, 8]
    assert bases(data, aborted=[]) == [0, 2, 5, 8]
    assert bases(data, aborted=[(1, 0)]) == [2, 5, 8]
    assert bases(data, aborted=[(1, 0), (2, 2), (1, 5)]) == [8]
    assert bases(data, start=3, aborted=[(2, 2)]) == [5, 8]


def test_an_emptied_batch_shows_nothing() -> None:
    for codec in CompressionType:
        assert bases(compacted(counted(0, 3, codec=codec), [False] * 3) + counted(3, 1)) == [3]


def test_lengths_and_magic_are_checked_before_anything_is_read() -> None:
    first, second = counted(0, 1), counted(1, 1)
    for position, new in ((layout.LENGTH_AT, b"\0\0\0\x30"), (layout.LENGTH_AT, b"\xff" * 4), (layout.MAGIC_AT, b"\1")):
        broken = second[:position] + new + second[position + len(new) :]
        found = iter(FetchedBatches(SOURCE, first + broken, 0, 100, None))
        assert next(found).header.base_offset == 0
        with pytest.raises(CorruptRecord, match="t-0: the batch at offset 1 "):
            next(found)


@pytest.mark.parametrize("base_offset", [-1, -(1 << 63), (1 << 63) - 1])
def test_a_base_offset_that_cannot_be(base_offset: int) -> None:
    data = bytearray(counted(0, 1))
    layout.assign(data, base_offset, 0)
    with pytest.raises(CorruptRecord, match=f"the batch at offset {base_offset} .* base offset cannot be"):
        bases(bytes(data), 0, 1 << 62)


@pytest.mark.parametrize("count", [-1, 4, (1 << 31) - 1])
def test_a_count_that_the_bytes_cannot_hold(count: int) -> None:
    broken = resealed(counted(0, 1), layout.COUNT_AT, count.to_bytes(4, signed=True))
    with pytest.raises(CorruptRecord, match=f"cannot have {count} records") as caught:
        bases(broken)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_a_codec_that_nobody_knows() -> None:
    broken = resealed(counted(0, 1), layout.ATTRIBUTES_AT, b"\0\7")
    with pytest.raises(CorruptRecord, match="no codec 7") as caught:
        bases(broken)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", list(CompressionType)[1:])
def test_what_grows_beyond_the_bound_when_decompressed(codec: CompressionType) -> None:
    bomb = counted(0, 20_000, codec=codec)
    with pytest.raises(CorruptRecord, match="t-0: the batch at offset 0 "):
        list(FetchedBatches(BatchSource("t", 0, True, 100_000), bomb, 0, 100_000, None))
    assert len(list(FetchedBatches(SOURCE, bomb, 0, 100_000, None))) == 1
