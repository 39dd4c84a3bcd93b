"""The walk: what consumers could not read is refused, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings

from strandline.records import walk
from strandline.records.errors import InvalidRecord
from strandline.records.record import encode_record
from strandline.records.varint import encode_varint, encode_varlong
from strandline.records.walk import PLAIN, walk_plain

from .walks import INT64_MAX, NOW, Case, cases, damaged, decoded, outcome


def record(delta: int = 0, key: bytes | None = b"k", value: bytes | None = b"v", timestamp: int = 0) -> bytes:
    return encode_record(delta, timestamp, key, value)


def framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@settings(max_examples=200, deadline=None)
@given(cases())
def test_as_strict_as_the_decoder(case: Case) -> None:
    found = outcome(PLAIN, case)
    event("refused" if isinstance(found, str) else "sound")
    expected = decoded(case)
    assert found == expected if expected is not None else isinstance(found, str)


def test_every_byte_of_a_batch_may_be_wrong() -> None:
    for case in damaged():
        found, expected = outcome(PLAIN, case), decoded(case)
        assert found == expected if expected is not None else isinstance(found, str)


def test_what_is_found_on_the_way() -> None:
    data = b"".join(
        record(i, key, timestamp=timestamp)
        for i, (key, timestamp) in enumerate([(b"a", 50), (None, 20), (b"", -NOW - 1), (None, 90)])
    )
    assert walk_plain(data, 0, 4, NOW) == (NOW + 20, NOW + 90, 2)
    assert walk_plain(memoryview(b"header" + data), 6, 4, NOW) == (NOW + 20, NOW + 90, 2)
    assert walk_plain(bytearray(record(timestamp=-NOW - 1)), 0, 1, NOW) == (-1, -1, 0)


@pytest.mark.parametrize("count", [64, 8192, 20_000])
def test_offset_deltas_of_every_width(count: int) -> None:
    data = b"".join(record(i) for i in range(count))
    assert walk_plain(data, 0, count, 5) == (5, 5, 0)
    with pytest.raises(InvalidRecord, match=f"Record {count - 1} of the batch does not have offset delta {count - 1}"):
        walk_plain(data[: -len(record(count - 1))] + record(count), 0, count, 5)


LIES = {
    "more records than there are": (record(), 1000, "Record 1 of the 1000"),
    "as many as a header can claim": (record(), 2**31 - 1, "Record 1 of"),
    "fewer records than there are": (record() + record(1), 1, "Bytes are left in the batch after its 1 records"),
    "no varint at all": (b"\xff" * 50, 1, "Record 0 of the 1 "),
    "a negative length": (encode_varint(-5) + b"abcdef", 1, "Record 0"),
    "a negative length of two bytes": (encode_varint(-500) + b"abcdef", 1, "Record 0"),
    "a length beyond the data": (encode_varint(2**30) + b"abc", 1, "Record 0"),
    "a length that is one short": (encode_varint(6) + record()[1:], 1, "Record 0"),
    "a key beyond its record": (framed(b"\0\0\0" + encode_varint(9) + b"k\2v\0") + record(1), 2, "Record 0"),
    "a value beyond its record": (framed(b"\0\0\0\2k" + encode_varint(9) + b"v\0") + record(1), 2, "Record 0"),
    "headers without number": (framed(b"\0\0\0\1\1" + encode_varint(2**31 - 1) + b"\0" * 9), 1, "Record 0"),
    "headers less than none": (framed(b"\0\0\0\1\1" + encode_varint(-2)), 1, "Record 0"),
    "a header without a key": (framed(b"\0\0\0\1\1\2\1\1"), 1, "Record 0"),
    "a header beyond its record": (framed(b"\0\0\0\1\1\2\2h" + encode_varint(5)) + record(1), 2, "Record 0"),
    "a gap": (record() + record(2), 2, "Record 1 of the batch does not have offset delta 1"),
    "an offset twice": (record() + record(0), 2, "offset delta 1"),
    "a start in the middle": (record(1), 1, "offset delta 0"),
    "a time beyond 64 bits": (framed(b"\0" + encode_varlong(INT64_MAX) + b"\0\1\1\0"), 1, "Record 0"),
    "nothing": (b"", 1, "Record 0"),
}


@pytest.mark.parametrize(("data", "count", "message"), LIES.values(), ids=LIES)
def test_lies(data: bytes, count: int, message: str) -> None:
    assert decoded((data, 0, count, NOW)) is None
    with pytest.raises(InvalidRecord, match=message) as refused:
        walk_plain(data, 0, count, NOW)
    assert not refused.value.record_errors


def test_a_process_starts_with_the_plain_walk() -> None:
    assert walk.PLAIN.walk is walk_plain
