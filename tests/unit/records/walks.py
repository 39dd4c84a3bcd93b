"""Encoded records as producers and their enemies send them, for every walk to judge."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from strandline.records.errors import InvalidRecord
from strandline.records.header import HEADER, MAGIC, BatchHeader
from strandline.records.record import encode_record, read_records
from strandline.records.walk import Walked, Walker

INT64_MAX = 2**63 - 1
NOW = 1_700_000_000_000
Case = tuple[bytes, int, int, int]
"""Data, the position of the first record, how many there should be, the base timestamp."""

_sizes = st.sampled_from([0, 1, 3, 62, 63, 64, 65, 127, 8190, 8192])
_binary = st.one_of(st.binary(max_size=9), st.builds(bytes, _sizes))
_headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)
_deltas = st.one_of(st.integers(-70, 9000), st.sampled_from([-NOW - 1, -1, INT64_MAX, -INT64_MAX - 1, INT64_MAX - NOW]))
_record = st.tuples(_deltas, st.none() | _binary, st.none() | _binary, _headers)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly a sound batch with one byte, one number or one edge wrong."""
    records = draw(st.lists(_record, min_size=1, max_size=6))
    first = draw(st.sampled_from([0, 0, 0, 0, 1, -1, 62]))
    parts = [encode_record(first + i, *record) for i, record in enumerate(records)]
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["change", "insert", "cut", "remove", "append"])):
            case "change" if data:
                data[at] = draw(st.integers(0, 255))
            case "insert":
                data[at:at] = draw(st.binary(max_size=6))
            case "cut":
                del data[at:]
            case "remove":
                del data[at : at + 1]
            case _:
                data += draw(st.binary(max_size=3))
    count = draw(st.sampled_from([len(records)] * 6 + [len(records) + 1, max(len(records) - 1, 1), 2**31 - 1]))
    position = draw(st.sampled_from([0, 61]))
    base_timestamp = draw(st.sampled_from([NOW, NOW, 0, -1, INT64_MAX, -INT64_MAX - 1, 1 << 62]))
    return bytes(position) + bytes(data), position, count, base_timestamp


def damaged() -> Iterator[Case]:
    """A batch of records of all kinds with each of its bytes changed, in turn, to each of a few others."""
    kinds = [(0, b"k", b"v", []), (-70, None, b"", [("h", None)]), (9000, b"", None, [("", b"x"), ("y", b"")])]
    kinds += [(70_000, b"k" * 70, b"v" * 8200, []), (-NOW - 1, None, None, [])]
    data = b"".join(encode_record(i, *kind) for i, kind in enumerate(kinds))  # type: ignore[arg-type]
    for at in range(len(data)):
        if data[at : at + 2] != b"vv":
            for byte in {0, 1, 2, 0x7F, 0x80, 0xFF, data[at] ^ 1, data[at] ^ 2, data[at] ^ 0x80}:
                yield data[:at] + bytes((byte,)) + data[at + 1 :], 0, len(kinds), NOW


def outcome(walker: Walker, case: Case) -> Walked | str:
    try:
        return walker.walk(*case)
    except InvalidRecord as error:
        return error.message


def decoded(case: Case) -> Walked | None:
    """What our decoder makes of it; None if consumers could not read all of it, or not at the offsets that were given out."""
    data, position, count, base_timestamp = case
    header = BatchHeader._make((0,) * len(HEADER.unpack(bytes(HEADER.size))))._replace(
        magic=MAGIC, base_timestamp=base_timestamp, records_count=count
    )
    try:
        records = list(read_records(data, position, header))
    except InvalidRecord:
        return None
    if [record.offset for record in records] != list(range(count)):
        return None
    timestamps = [record.timestamp for record in records]
    return (
        min([timestamp for timestamp in timestamps if timestamp != -1], default=-1),
        max(*timestamps, -1),
        sum(record.key is None for record in records),
    )
