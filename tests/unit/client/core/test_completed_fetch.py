"""Opening what a fetch brought."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.completed_fetch import CompletedFetch
from strandline.client.core.positions import PartitionState
from strandline.errors import ErrorCode
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.errors import CorruptRecord


def batch(base_offset: int, count: int, *, codec=CompressionType.NONE, epoch: int = 3, **fields) -> bytes:
    builder = BatchBuilder()
    for i in range(count):
        builder.append(None, b"%d" % (base_offset + i), (), 1000 + i)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=epoch, codec=codec, **fields))


def marker(base_offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    builder = BatchBuilder()
    builder.append(control_key(kind), end_txn_marker(0), (), 0)
    return bytes(
        builder.build(
            base_offset=base_offset, producer_id=producer_id, producer_epoch=0, transactional=True, control=True
        )
    )


def txn(base_offset: int, count: int, producer_id: int) -> bytes:
    return batch(base_offset, count, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)


def fetched(data: bytes, offset: int = 0, aborted=None) -> CompletedFetch:
    return CompletedFetch("t", 0, offset, data, aborted, check_crcs=True, decompressed_bytes_max=1 << 20)


def offsets(data: bytes, offset: int = 0, aborted=None) -> list[int]:
    return [record.offset for record in fetched(data, offset, aborted).take(1000)]


@pytest.mark.parametrize("codec", CompressionType)
def test_a_fetch_may_begin_inside_a_batch_and_end_inside_another(codec):
    data = batch(10, 5, codec=codec) + batch(15, 3) + batch(18, 3)[:-1]
    part = fetched(data, 12)
    records = part.take(100)
    assert [record.offset for record in records] == [12, 13, 14, 15, 16, 17]
    assert records[0] == ("t", 0, 12, 1002, None, b"12", (), 3, 0)
    assert part.next_offset == part.offset == 18
    assert part.is_empty


def test_records_are_taken_in_parts():
    part = fetched(batch(0, 3) + batch(3, 3))
    assert [r.offset for r in part.take(2)] == [0, 1]
    assert part.offset == 2
    assert not part.is_empty
    assert [r.offset for r in part.take(3)] == [2, 3, 4]
    assert [r.offset for r in part.take(3)] == [5]
    assert part.is_empty


def test_aborted_transactions_are_hidden_from_read_committed_only():
    data = (
        txn(0, 2, producer_id=1)
        + txn(2, 2, producer_id=2)
        + marker(4, 1, ControlRecordType.ABORT)
        + txn(5, 1, producer_id=1)
        + marker(6, 2, ControlRecordType.COMMIT)
        + marker(7, 1, ControlRecordType.COMMIT)
        + batch(8, 1)
    )
    assert offsets(data) == [0, 1, 2, 3, 5, 8]
    assert offsets(data, aborted=[(1, 0)]) == [2, 3, 5, 8]
    assert offsets(data, aborted=[]) == [0, 1, 2, 3, 5, 8]


def test_the_position_passes_what_is_hidden():
    part = fetched(txn(0, 2, producer_id=1) + marker(2, 1, ControlRecordType.ABORT), 0, [(1, 0)])
    assert part.take(10) == []
    assert part.offset == 3


def test_a_broken_batch_is_reported_after_what_is_before_it():
    broken = bytearray(batch(3, 2))
    broken[-1] ^= 1
    state = PartitionState("t", 0)
    state.seek(0)
    state.add(fetched(batch(0, 3) + bytes(broken)))
    assert [record.offset for record in state.take(100)] == [0, 1, 2]
    with pytest.raises(CorruptRecord) as caught:
        state.take(100)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert (state.position, state.fetch_offset) == (3, 3), "it is fetched again"


@pytest.mark.parametrize("at", [22, 26], ids=["attributes", "last offset delta"])
def test_a_flipped_bit_does_not_hide_a_batch(at):
    """One that makes it a control batch, or one that ends before the position."""
    damaged = bytearray(batch(5, 33))
    damaged[at] ^= 0x20
    part = fetched(batch(0, 5) + bytes(damaged) + batch(38, 2))
    assert [record.offset for record in part.take(100)] == [0, 1, 2, 3, 4]
    assert isinstance(part.error, CorruptRecord)
    assert part.offset == 5
