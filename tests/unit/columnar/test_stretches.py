"""Ordinary batches are found by a kernel; the others must not get lost among them."""

from __future__ import annotations

import pytest

from strandline.columnar.batches import BatchSource, FetchedBatches
from strandline.columnar.kernels import calls
from strandline.columnar.loading import kernels
from strandline.columnar.stretches import BATCHES_MAX, BYTES_MAX, Stretches
from strandline.records import header as layout
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType
from strandline.records.errors import CorruptRecord
from tests.unit.columnar.logs import WAYS, compacted, counted, guarded, marker, read, transactional


def stretches(data: bytes, start: int = 0, end: int = 1 << 40, check_crcs: bool = True) -> list[list[int]]:
    """Base offsets, one list for each stretch."""
    compiled = kernels("reading")
    assert compiled is not None
    source = BatchSource("t", 3, check_crcs, 1 << 20)
    batches = FetchedBatches(source, guarded(data) if data else data, start, end, None)
    return [
        stretch.plan[:, calls.PLAN_BASE_OFFSET].tolist() for stretch in Stretches(batches, compiled["scan_batches"])
    ]


def test_ordinary_batches_come_together() -> None:
    data = counted(0, 2) + counted(2, 2) + counted(9, 1) + counted(10, 5)[:-1]
    assert stretches(data) == [[0, 2, 9]]
    assert stretches(data, 3, 9) == [[2]]
    assert stretches(data, 4, 9) == []
    assert stretches(b"") == stretches(data[:60]) == []


def test_what_is_not_ordinary_comes_alone_and_in_order() -> None:
    data = (
        counted(0, 1)
        + counted(1, 1, codec=CompressionType.LZ4)
        + compacted(counted(2, 2), [False, False])
        + marker(4, 1, ControlRecordType.COMMIT)
        + counted(5, 1)
        + counted(6, 1, append_time=5)
        + counted(7, 1, append_time=6)
        + transactional(8, 1, producer_id=1)
    )
    assert stretches(data) == [[0], [1], [5], [6, 7], [8]]


@pytest.mark.parametrize("way", WAYS)
def test_aborted_transactions_among_ordinary_batches(way: str) -> None:
    data = (
        counted(0, 1)
        + transactional(1, 2, producer_id=1)
        + transactional(3, 2, producer_id=2)
        + counted(5, 1)
        + marker(6, 1, ControlRecordType.ABORT)
        + transactional(7, 1, producer_id=1)
        + marker(8, 1, ControlRecordType.COMMIT)
        + marker(9, 2, ControlRecordType.COMMIT)
    )
    shown = {None: [0, 1, 2, 3, 4, 5, 7], (): [0, 1, 2, 3, 4, 5, 7], ((1, 1),): [0, 3, 4, 5, 7]}
    for aborted, offsets in shown.items():
        assert [row["offset"] for row in read(way, data, aborted=aborted).rows] == offsets


def test_a_wrong_crc_ends_a_stretch() -> None:
    broken = counted(2, 1)[:-2] + b"\0\0"
    data = counted(0, 2) + broken + counted(3, 1)
    compiled = kernels("reading")
    assert compiled is not None
    found = iter(Stretches(FetchedBatches(BatchSource("t", 3, True, 100), data, 0, 9, None), compiled["scan_batches"]))
    assert next(found).plan[:, calls.PLAN_BASE_OFFSET].tolist() == [0]
    with pytest.raises(CorruptRecord, match="t-3: the batch at offset 2 cannot be read: The batch carries CRC"):
        next(found)
    assert stretches(data, check_crcs=False) == [[0, 2, 3]]


def test_lengths_that_lead_out_of_the_bytes() -> None:
    first, second = counted(0, 1), bytearray(counted(1, 1))
    for length in (len(second) - layout.LOG_OVERHEAD + 1, (1 << 31) - 1):
        second[layout.LENGTH_AT : layout.LENGTH_AT + 4] = length.to_bytes(4)
        assert stretches(first + second) == [[0]]


def test_a_stretch_has_bounds() -> None:
    many = b"".join(counted(i, 1) for i in range(BATCHES_MAX + 3))
    assert [len(each) for each in stretches(many)] == [BATCHES_MAX, 3]
    large = b"".join(counted(10_000 * i, 10_000) for i in range(12))
    size = len(large) // 12
    assert max(len(each) for each in stretches(large)) == -(-BYTES_MAX // size)
