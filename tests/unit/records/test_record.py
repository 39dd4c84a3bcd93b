# mypy: disable-error-code="arg-type"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.records.batch import BatchBuilder
from strandline.records.errors import InvalidRecord
from strandline.records.header import BatchHeader, read_header
from strandline.records.record import Record, encode_headers, encode_record, read_records, record_bytes_max
from strandline.records.varint import encode_varint, encode_varlong

Pairs = tuple[tuple[str, bytes | None], ...]
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
INT63 = st.integers(-(2**62), 2**62)


def header_of(count: int, **fields: int) -> BatchHeader:
    builder = BatchBuilder()
    builder.append(None, None)
    return read_header(builder.build())._replace(records_count=count, **fields)


def read(data: bytes, count: int = 1, **fields: int) -> list[Record]:
    return list(read_records(data, 0, header_of(count, **fields)))


def body(*, offset: bytes = b"\x00", key: bytes = b"\x02k", value: bytes = b"\x02v", headers: bytes = b"\x00") -> bytes:
    return b"\x00\x00" + offset + key + value + headers


def framed(content: bytes, claim: int | None = None) -> bytes:
    return encode_varint(len(content) if claim is None else claim) + content


@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), INT63, st.none() | st.binary(), st.none() | st.binary(), HEADERS),
        max_size=5,
    )
)
def test_any_records_round_trip(fields: list[tuple[int, int, bytes | None, bytes | None, Pairs]]) -> None:
    data = b"".join(encode_record(*field) for field in fields)
    expected = [Record(100 + offset, 5 + timestamp, *rest) for offset, timestamp, *rest in fields]
    assert read(data, len(fields), base_offset=100, base_timestamp=5) == expected
    assert all(len(encode_record(*field)) <= record_bytes_max(*field[2:]) for field in fields)


@pytest.mark.parametrize("delta", [0, -1, 63, -64, 64, -65, 8191, 8192, -8193, 2**31 - 1])
def test_deltas_of_every_width(delta: int) -> None:
    (record,) = read(encode_record(delta, delta, b"k", b"v"), base_offset=7, base_timestamp=9)
    assert (record.offset, record.timestamp) == (7 + delta, 9 + delta)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1023, 1024, 8191, 8192, 1 << 20])
def test_keys_and_values_of_every_width(size: int) -> None:
    content = bytes(size)
    (record,) = read(encode_record(0, 0, content, memoryview(content), (("h", content),)))
    assert (record.key, record.value, record.headers) == (content, content, (("h", content),))
    assert type(record.value) is bytes


def test_a_count_of_zero_reads_nothing() -> None:
    assert read(b"", 0) == []


def test_a_negative_size_is_null_whatever_it_is() -> None:
    (record,) = read(
        framed(body(key=encode_varint(-7), value=encode_varint(-100), headers=b"\x02\x02h" + encode_varint(-70)))
    )
    assert (record.key, record.value, record.headers) == (None, None, (("h", None),))


def test_a_header_key_that_is_not_utf8_does_not_stop_the_reader() -> None:
    (record,) = read(framed(body(headers=b"\x02\x02\xff\x01")))
    assert record.headers == (("\ufffd", None),)


GOOD = encode_record(0, 0, b"k", b"v")


@pytest.mark.parametrize(
    ("data", "count", "complaint"),
    [
        pytest.param(GOOD, -1, "cannot have -1 records", id="negative count"),
        pytest.param(GOOD, 2, "ends before its 2 records", id="a record is missing"),
        pytest.param(b"", 1, "ends before", id="no record at all"),
        pytest.param(GOOD + b"\x00", 1, "1 bytes are left", id="a byte is left"),
        pytest.param(GOOD + GOOD, 1, "bytes are left", id="a record is left"),
        pytest.param(GOOD[:-1], 1, "only 7 are left", id="the last byte is missing"),
        pytest.param(framed(body(), claim=2**31 - 1), 1, "claims 2147483647 bytes", id="enormous length"),
        pytest.param(framed(body(), claim=-1), 1, "claims -1 bytes", id="negative length"),
        pytest.param(framed(body(), claim=len(body()) - 1), 1, "claims 7 bytes and has 8", id="length one short"),
        pytest.param(framed(body() + b"\x00"), 1, "claims 9 bytes and has 8", id="length one long"),
        pytest.param(framed(body(key=b"\x40k")), 1, "ends before", id="key past the end"),
        pytest.param(framed(body(value=b"\x06v")), 1, "ends before|and has", id="value past the end"),
        pytest.param(framed(body(key=encode_varint(2**31 - 1))), 1, "ends before", id="enormous key"),
        pytest.param(framed(body(headers=b"\x01")), 1, "-1 headers", id="negative header count"),
        pytest.param(
            framed(body(headers=encode_varint(2**31 - 1))), 1, "cannot have 2147483647 headers", id="many headers"
        ),
        pytest.param(framed(body(headers=b"\x02\x01\x01")), 1, "header key cannot have -1", id="null header key"),
        pytest.param(framed(body(headers=b"\x02\x40h\x01")), 1, "past the end", id="header key past the end"),
        pytest.param(framed(body(headers=b"\x02\x02h\x40v")), 1, "and has", id="header value past the end"),
        pytest.param(framed(body(offset=b"\x80" * 6)), 1, "within 5 bytes", id="endless offset delta"),
        pytest.param(framed(b"\x00" + b"\x80" * 11), 1, "within 10 bytes", id="endless timestamp delta"),
        pytest.param(b"\x80" * 6, 1, "within 5 bytes", id="endless length"),
        pytest.param(b"\x80", 1, "ends before", id="cut within the length"),
        pytest.param(
            framed(b"\x00" + encode_varlong(2**63 - 1) + body()[2:]), 1, "beyond 64 bits", id="timestamp overflow"
        ),
    ],
)
def test_a_malformed_record(data: bytes, count: int, complaint: str) -> None:
    with pytest.raises(InvalidRecord, match=complaint):
        read(data, count, base_timestamp=1)


def test_timestamps_at_the_edge_of_64_bits() -> None:
    (record,) = read(encode_record(0, 0, None, None), base_timestamp=2**63 - 1)
    assert record.timestamp == 2**63 - 1
    with pytest.raises(InvalidRecord, match="beyond 64 bits"):
        read(encode_record(0, 1, None, None), base_timestamp=2**63 - 1)


@given(st.binary(max_size=60), st.integers(-2, 5))
def test_garbage_is_an_invalid_record_or_reads(data: bytes, count: int) -> None:
    try:
        records = read(data, count)
    except InvalidRecord:
        return
    assert len(records) == count


@given(st.data())
def test_one_wrong_byte_never_raises_anything_else(data: st.DataObject) -> None:
    raw = bytearray(encode_record(0, 5, b"key", b"value" * 20, (("header", b"x"), ("other", None))) * 2)
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(read(bytes(raw), 2)) == 2
    except InvalidRecord:
        pass


def test_headers_keep_order_and_duplicates() -> None:
    pairs: Pairs = (("b", b"1"), ("a", None), ("b", b"2"))
    assert read(encode_record(0, 0, None, None, pairs))[0].headers == pairs
    assert encode_headers(pairs)[0] == 6
