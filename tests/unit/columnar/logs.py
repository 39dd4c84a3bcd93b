"""Logs to be read: batches of every kind one after another, as a broker may send them; and the two ways to read them."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from strandline.columnar.batches import BatchSource, FetchedBatches
from strandline.columnar.columns import COLUMNS, Layout
from strandline.columnar.compiled_rows import CompiledRows
from strandline.columnar.loading import kernels
from strandline.columnar.plain_rows import PlainRows
from strandline.ports import Buffer
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.errors import CorruptRecord
from strandline.records.header import read_header
from strandline.records.record import Record
from strandline.records.rewrite import retain

ALL_COLUMNS = (*COLUMNS, "headers")
NOW = 1_700_000_000_000
WAYS = ("plain", "compiled")


class Outcome(NamedTuple):
    rows: list[dict[str, Any]]
    counts: list[int]
    """Of the rows in each RecordBatch."""
    error: str | None


def read(
    way: str,
    data: Buffer,
    start: int = 0,
    end: int = 1 << 62,
    aborted: Sequence[tuple[int, int]] | None = None,
    *,
    columns: Sequence[str] = ALL_COLUMNS,
    rows_max: int = 10_000,
    bytes_max: int = 2 << 20,
    check_crcs: bool = True,
    decompressed_bytes_max: int = 1 << 24,
) -> Outcome:
    source = BatchSource("t", 3, check_crcs, decompressed_bytes_max)
    shape = Layout("t", 3, columns, rows_max, bytes_max)
    compiled = kernels("reading")
    assert compiled is not None
    batches = FetchedBatches(source, data, start, end, aborted)
    return outcome(iter(PlainRows(shape, batches) if way == "plain" else CompiledRows(shape, batches, compiled)))


def outcome(batches: Iterator[pa.RecordBatch]) -> Outcome:
    rows: list[dict[str, Any]] = []
    counts = []
    error = None
    try:
        for batch in batches:
            batch.validate(full=True)
            # Python's datetime ends where Kafka's timestamps go on.
            columns = [
                column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns
            ]
            rows += pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
            counts.append(batch.num_rows)
    except CorruptRecord as corrupt:
        error = str(corrupt)
    return Outcome(rows, counts, error)


def batch(records: Sequence[Record], base_offset: int = 0, *, append_time: int | None = None, **fields: Any) -> bytes:
    builder = BatchBuilder()
    for record in records:
        builder.append(record.key, record.value, record.headers, record.timestamp)
    built = builder.build(base_offset=base_offset, **fields)
    if append_time is not None:
        layout.stamp_append_time(built, append_time)
    return bytes(built)


def counted(base_offset: int, count: int, **fields: Any) -> bytes:
    """Values are the offsets."""
    return batch([Record(0, NOW + i, None, b"%d" % (base_offset + i)) for i in range(count)], base_offset, **fields)


def transactional(base_offset: int, count: int, producer_id: int) -> bytes:
    return counted(base_offset, count, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)


def marker(base_offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    builder = BatchBuilder()
    builder.append(control_key(kind), end_txn_marker(0), (), 0)
    fields: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True, "control": True}
    return bytes(builder.build(base_offset=base_offset, **fields))


def compacted(whole: bytes, kept: Sequence[bool]) -> bytes:
    """What is left of a batch when only some of its records are kept."""
    left = [record for record, is_kept in zip(decode(whole), kept, strict=False) if is_kept]
    return bytes(retain(read_header(whole), left))


def resealed(data: bytes, position: int, new: bytes) -> bytes:
    """The batch with other bytes at a position, and a CRC that is right again."""
    changed = bytearray(data)
    changed[position : position + len(new)] = new
    layout.seal(changed)
    return bytes(changed)


def guarded(data: bytes) -> memoryview:
    """The same bytes at the end of a page, before one that must not be touched: who reads beyond them ends the process."""
    pages = (len(data) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    view = memoryview(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + pages * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    start = pages * mmap.PAGESIZE - len(data)
    view[start : start + len(data)] = data
    return view[start : start + len(data)]


small_bytes = st.binary(max_size=40) | st.binary(min_size=60, max_size=300)
header_lists = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
timestamps = st.integers(-1, 1 << 62) | st.integers(NOW - 100_000, NOW + 100_000)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, st.none() | small_bytes, st.none() | small_bytes, header_lists),
    min_size=1,
    max_size=12,
)


@st.composite
def batches(draw: st.DrawFn, base_offset: int) -> bytes:
    """One batch of any kind."""
    producer_id = draw(st.integers(-1, 3))
    if producer_id > 0 and draw(st.integers(0, 3)) == 0:
        return marker(
            base_offset, producer_id, draw(st.sampled_from([ControlRecordType.ABORT, ControlRecordType.COMMIT]))
        )
    records = draw(record_lists)
    whole = batch(
        records,
        base_offset,
        codec=draw(st.sampled_from(CompressionType)),
        producer_id=producer_id,
        transactional=producer_id > 0,
        append_time=draw(st.none() | timestamps),
    )
    if draw(st.integers(0, 3)) == 0:
        return compacted(whole, draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records))))
    return whole


class Log(NamedTuple):
    data: bytes
    start: int
    end: int
    aborted: list[tuple[int, int]] | None


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """What a fetch may bring: gaps between batches, a start and an end anywhere, an incomplete batch at the end."""
    base_offset = draw(st.integers(0, 1000) | st.integers(1 << 40, (1 << 40) + 10))
    first = base_offset
    data = b""
    begun = [(1, base_offset)]
    for _ in range(draw(st.integers(0, 6))):
        one = draw(batches(base_offset))
        data += one
        begun.append((read_header(one).producer_id, base_offset))
        base_offset = read_header(one).next_offset + draw(st.integers(0, 2))
    if data and draw(st.booleans()):
        data = data[: -draw(st.integers(1, min(len(data), 100)))]
    bounds = st.integers(max(0, first - 3), base_offset + 3)
    aborted = st.none() | st.lists(st.sampled_from(begun) | st.tuples(st.integers(1, 3), bounds), max_size=3)
    return Log(data, draw(st.just(0) | bounds), draw(st.just(1 << 62) | bounds), draw(aborted))
