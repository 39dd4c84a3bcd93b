from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint as judge_decode
from kafka.record.util import encode_varint as judge_encode

from strandline.errors import ErrorCode
from strandline.records.errors import InvalidRecord
from strandline.records.varint import (
    encode_unsigned_varint,
    encode_varint,
    encode_varlong,
    read_unsigned_varint,
    read_varint,
    read_varlong,
)

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_known_varints(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(int32)
def test_varint_round_trip_in_any_buffer(value: int) -> None:
    data = b"??" + encode_varint(value) + b"\x80"
    for buffer in (data, bytearray(data), memoryview(data)):
        assert read_varint(buffer, 2) == (value, len(data) - 1)


@given(int64)
def test_varlong_round_trip_and_judge(value: int) -> None:
    encoded = encode_varlong(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))
    judged = bytearray()
    judge_encode(value, judged.append)
    assert bytes(judged) == encoded
    assert judge_decode(bytearray(encoded)) == (value, len(encoded))


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varint_round_trip(value: int) -> None:
    encoded = encode_unsigned_varint(value)
    assert len(encoded) <= 5
    assert read_unsigned_varint(encoded, 0) == (value, len(encoded))


def test_the_longest_varlong_has_ten_bytes() -> None:
    assert len(encode_varlong(-(2**63))) == 10


@pytest.mark.parametrize("read", [read_unsigned_varint, read_varint, read_varlong])
def test_a_varint_that_runs_past_the_end(read) -> None:  # type: ignore[no-untyped-def]
    for data in (b"", b"\x80", b"\xff\xff"):
        with pytest.raises(InvalidRecord, match="past the end") as caught:
            read(data, 0)
        assert caught.value.code is ErrorCode.INVALID_RECORD


def test_a_varint_that_does_not_end() -> None:
    for read, bound in ((read_unsigned_varint, 5), (read_varint, 5), (read_varlong, 10)):
        with pytest.raises(InvalidRecord, match=f"within {bound} bytes"):
            read(b"\x80" * bound + b"\x00", 0)


def test_bits_beyond_the_type_are_dropped_as_in_java() -> None:
    assert read_unsigned_varint(b"\xff\xff\xff\xff\x7f", 0) == (2**32 - 1, 5)
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0) == (-(2**31), 5)
    assert read_varlong(b"\xff" * 9 + b"\x7f", 0) == (-(2**63), 10)


def test_what_does_not_fit_is_a_bug() -> None:
    for encode, value in ((encode_varint, 2**31), (encode_varlong, 2**63), (encode_unsigned_varint, -1)):
        with pytest.raises(AssertionError):
            encode(value)
