"""Varints, to their limits."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import encode_unsigned_varint, read_unsigned_varint

KNOWN = [
    (0, b"\x00"),
    (127, b"\x7f"),
    (128, b"\x80\x01"),
    (16383, b"\xff\x7f"),
    (16384, b"\x80\x80\x01"),
    (2**31 - 1, b"\xff\xff\xff\xff\x07"),
    (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
]


@pytest.mark.parametrize(("number", "data"), KNOWN)
def test_known_varints(number, data):
    assert encode_unsigned_varint(number) == data
    assert read_unsigned_varint(b"-" + data + b"-", 1) == (number, 1 + len(data))


def test_a_varint_may_be_longer_than_it_must_be_but_not_than_five_bytes():
    assert read_unsigned_varint(b"\x81\x80\x80\x80\x00", 0) == (1, 5)
    with pytest.raises(MalformedRequest, match="longer than 5 bytes"):
        read_unsigned_varint(b"\x81\x80\x80\x80\x80\x00", 0)
    with pytest.raises(MalformedRequest, match="32 bits"):
        read_unsigned_varint(b"\xff\xff\xff\xff\x10", 0)
