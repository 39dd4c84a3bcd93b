"""The kernels beside plain Python, on bytes that mean harm."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.records import header as layout
from strandline.records.batch import join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import read_header
from strandline.records.record import Record, encode_record
from strandline.records.varint import encode_varint, encode_varlong
from tests.unit.columnar.logs import WAYS, batch, counted, guarded, read, record_lists


def around(payload: bytes, count: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    """A batch with these bytes for records, all else being right."""
    header = read_header(counted(0, 1))._replace(records_count=count, last_offset_delta=max(count, 1) - 1)
    return bytes(join(header._replace(attributes=int(codec)), compress(codec, payload)))


def both(data: bytes, **more: int) -> tuple[list[int], str | None]:
    """Offsets and error, the same both ways, from a place where a step beyond the bytes is the last."""
    plain, compiled = (read(way, guarded(data), **more) for way in WAYS)
    assert (plain.rows, plain.error) == (compiled.rows, compiled.error)
    if not any("\ufffd" in header["key"] for row in plain.rows for header in row["headers"] or ()):
        assert plain.counts == compiled.counts
    return [row["offset"] for row in compiled.rows], compiled.error


def record(
    *,
    length: bytes | None = None,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = b"\1",
    value: bytes = b"\1",
    headers: bytes = b"\0",
) -> bytes:
    body = b"\0" + timestamp + offset + key + value + headers
    return (encode_varint(len(body)) if length is None else length) + body


GOOD = encode_record(0, 0, b"key", b"value", [("h", b"1"), ("n", None)])
ENDLESS = b"\xff" * 30
HUGE = encode_varint((1 << 31) - 1)
LEAST = encode_varint(-(1 << 31))
HOSTILE = {
    "endless length": record(length=ENDLESS),
    "huge length": record(length=HUGE),
    "negative length": record(length=LEAST),
    "no length": record(length=b"\0"),
    "length too small": record(length=b"\x08"),
    "length too large": record(length=b"\x0e"),
    "endless timestamp": record(timestamp=ENDLESS),
    "timestamp beyond 64 bits": record(timestamp=encode_varlong((1 << 63) - 1)),
    "endless offset": record(offset=ENDLESS),
    "endless key size": record(key=ENDLESS),
    "huge key": record(key=HUGE),
    "key one too long": record(key=b"\x06k", value=b"", headers=b""),
    "key to the very end": record(key=b"\x02k", value=b"", headers=b""),
    "endless value size": record(value=ENDLESS),
    "huge value": record(value=HUGE),
    "value to the very end": record(value=b"\x02v", headers=b""),
    "endless header count": record(headers=ENDLESS),
    "huge header count": record(headers=HUGE),
    "negative header count": record(headers=b"\1"),
    "more headers than there are": record(headers=b"\4\2h\1"),
    "negative header key": record(headers=b"\2\1\1"),
    "huge header key": record(headers=b"\2" + HUGE + b"\1"),
    "huge header value": record(headers=b"\2\2h" + HUGE),
    "endless header value": record(headers=b"\2\2h" + ENDLESS),
    "bytes after the headers": record(headers=b"\0\0"),
}


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record(name: str, codec: CompressionType) -> None:
    for behind in (b"", GOOD):
        offsets, error = both(around(GOOD + HOSTILE[name] + behind, 2 + bool(behind), codec))
        assert offsets == [0]
        assert error is not None
        assert "t-3: the batch at offset 0 cannot be read" in error


def test_more_or_fewer_records_than_announced() -> None:
    for payload, count in ((GOOD, 2), (GOOD + GOOD, 1), (GOOD + b"\0", 1), (b"", 1), (GOOD[:-1], 1)):
        assert both(around(payload, count))[1] is not None


def test_a_negative_size_of_any_kind_is_a_null() -> None:
    data = around(record(key=LEAST, value=b"\5", headers=b"\2\2h\5"), 1)
    for way in WAYS:
        (row,) = read(way, data).rows
        assert (row["key"], row["value"], row["headers"]) == (None, None, [{"key": "h", "value": None}])


def test_offsets_out_of_the_range_are_left_out_wherever_they_stand() -> None:
    deltas = [5, -3, 2, (1 << 31) - 1, 0, -(1 << 31)]
    data = around(b"".join(encode_record(delta, 0, None, b"") for delta in deltas), len(deltas))
    assert both(data, end=5) == ([2, 0], None)


@pytest.mark.parametrize("timestamp", [(1 << 63) - 1, -(1 << 63), 9_223_372_036_854_776, -9_223_372_036_854_776, -1])
def test_timestamps_beyond_microseconds_are_the_last_there_are(timestamp: int) -> None:
    bound = ((1 << 63) - 1) // 1000 * 1000
    wanted = max(-bound, min(bound, timestamp * 1000))
    own = around(record(timestamp=encode_varlong(timestamp)), 1)
    own = bytes(join(read_header(own)._replace(base_timestamp=0), own[layout.RECORDS_AT :]))
    for way in WAYS:
        (row,) = read(way, own).rows
        assert (row["timestamp"], row["timestampType"]) == (wanted, 0)
    stamped = batch([Record(0, 5, None, None)], append_time=timestamp)
    for way in WAYS:
        (row,) = read(way, stamped).rows
        assert (row["timestamp"], row["timestampType"]) == (wanted, 1)


def test_header_keys_that_are_not_utf8_are_shown_as_well_as_they_can_be() -> None:
    payload = record(headers=b"\4" + b"\4a\xff" + b"\2x" + b"\2\xc3" + b"\1") + record(headers=b"\2" + b"\4\xc3\xa9\1")
    for way in WAYS:
        found = read(way, around(payload, 2))
        assert found.error is None
        assert [row["headers"] for row in found.rows] == [
            [{"key": "a\ufffd", "value": b"x"}, {"key": "\ufffd", "value": None}],
            [{"key": "é", "value": None}],
        ]


@settings(max_examples=150, deadline=None)
@given(
    record_lists,
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=6)), min_size=1, max_size=3),
    st.integers(0, 60),
    st.sampled_from([0, 0, 1]),
)
@example([Record(0, 0, None, None)], [(0, b"\x80" * 6)], 0, 0)
def test_any_damage_is_seen_the_same_both_ways(
    records: list[Record], damage: list[tuple[int, bytes]], cut: int, more: int
) -> None:
    payload = bytearray(batch(records)[layout.RECORDS_AT :])
    for position, new in damage:
        at = position % len(payload)
        payload[at : at + len(new)] = new[: len(payload) - at]
    payload = payload[: max(1, len(payload) - cut)]
    both(around(bytes(payload), len(records) + more))
    both(around(bytes(payload), len(records) + more), rows_max=2, bytes_max=50)


def test_a_row_beyond_the_bounds_comes_alone() -> None:
    sizes = [10, 10, 500, 10, 90, 10]
    data = batch([Record(0, 0, b"k" * 5, b"v" * (size - 5)) for size in sizes])
    for way in WAYS:
        assert read(way, data, bytes_max=100).counts == [2, 1, 2, 1]
        assert read(way, data, bytes_max=100, columns=["key"]).counts == [6]
        assert read(way, data, rows_max=4).counts == [4, 2]


def test_empty_headers_take_room_too() -> None:
    """Two bytes each on the wire, and many more here: without a count they would be gathered without a bound."""
    data = batch([Record(0, 0, None, None, (("", None),) * 10)] * 6)
    for way in WAYS:
        assert read(way, data, bytes_max=160).counts == [2, 2, 2]
        assert read(way, data, bytes_max=160, columns=["offset"]).counts == [6]


@pytest.mark.parametrize("codec", CompressionType)
def test_batches_of_which_little_is_wanted_are_not_all_held(codec: CompressionType) -> None:
    data = b"".join(batch([Record(0, 0, b"k", b"v" * 1000)] * 2, 2 * i, codec=codec) for i in range(8))
    for way in WAYS:
        found = read(way, data, columns=["key", "offset"], bytes_max=160)
        assert [row["offset"] for row in found.rows] == list(range(16))
        assert found.counts == ([16] if codec is CompressionType.NONE else [6, 6, 4])


def test_a_change_of_the_timestamp_type_begins_a_record_batch() -> None:
    data = counted(0, 3) + counted(3, 2) + counted(5, 2, append_time=7) + counted(7, 1)
    for way in WAYS:
        found = read(way, data)
        assert found.counts == [5, 2, 1]
        assert [row["timestampType"] for row in found.rows] == [0] * 5 + [1] * 2 + [0]
        assert [row["timestamp"] for row in found.rows[5:7]] == [7000, 7000]


def test_rows_of_many_batches_and_codecs_in_one_record_batch() -> None:
    data = b"".join(counted(3 * i, 3, codec=CompressionType(i % 5)) for i in range(25))
    for way in WAYS:
        found = read(way, data, 1, 74)
        assert found.counts == [73]
        assert [row["value"] for row in found.rows] == [b"%d" % i for i in range(1, 74)]
