"""Varints and tagged fields: the parts of Kafka's encoding that every message shares, and the limits on all of them.

Always true: what a peer's bytes make us build or walk is bounded before it is built or walked. An index past the end is left
to raise IndexError here; the codec turns it into MalformedRequest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NoReturn

from strandline.wire.errors import MalformedRequest

REQUEST_OBJECTS_MAX = 400_000
"""Structs, fields and array elements that one request may become: some 32 MiB of Python objects at the worst. The names of 100,000
topics fit, or what to look up of 60,000 partitions."""

RESPONSE_OBJECTS_MAX = 16_000_000
"""The same for a reply, from a server that we chose: the metadata of 800,000 partitions fits."""

STRING_BYTES_MAX = 32_767
"""What Kafka takes for a string, however its size is written."""

TAGS_MAX = 128
"""Tagged fields in one struct. Kafka's largest message has four."""

TAG_BYTES_MAX = 1 << 20
"""Size of one tagged field that we do not know."""

OBJECTS_PER_TAG = 10
"""What a tagged field costs of a message's objects, whether we keep it or not: walking past it takes that much time."""


def read_unsigned_varint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at this position, and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedRequest("a varint does not fit into 32 bits")
            return value, position
    raise MalformedRequest("a varint is longer than 5 bytes")


def encode_unsigned_varint(value: int) -> bytes:
    """This number, at most 32 bits, as an unsigned varint."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def charge_tags(count: int, objects_left: int) -> int:
    """What is left of the message's objects after a section of so many tagged fields."""
    if count > TAGS_MAX:
        raise MalformedRequest(f"{count} tagged fields in one struct, more than {TAGS_MAX}")
    objects_left -= count * OBJECTS_PER_TAG
    if objects_left < 0:
        raise MalformedRequest("more tagged fields than one message may have")
    return objects_left


def next_tag(data: bytes | bytearray | memoryview, position: int, last_tag: int) -> tuple[int, int, int]:
    """The tag here, the position of its value and the position after it."""
    tag, position = read_unsigned_varint(data, position)
    if tag <= last_tag:
        raise MalformedRequest(f"tag {tag} after tag {last_tag}, not in ascending order")
    size, position = read_unsigned_varint(data, position)
    if size > len(data) - position:
        too_long(size, len(data) - position)
    return tag, position, position + size


def skip_tag(tag: int, position: int, end: int) -> int:
    """Pass over a tagged field that we do not know."""
    if end - position > TAG_BYTES_MAX:
        raise MalformedRequest(f"unknown tagged field {tag} of {end - position} bytes, more than {TAG_BYTES_MAX}")
    return end


def skip_tags(data: bytes | bytearray | memoryview, position: int, objects_left: int) -> tuple[int, int]:
    """Pass over a whole section of tagged fields, none of which we know. Keeps nothing of them."""
    count, position = read_unsigned_varint(data, position)
    objects_left = charge_tags(count, objects_left)
    tag = -1
    for _ in range(count):
        tag, position, end = next_tag(data, position, tag)
        position = skip_tag(tag, position, end)
    return position, objects_left


def tagged(tag: int, value: bytes) -> bytes:
    return encode_unsigned_varint(tag) + encode_unsigned_varint(len(value)) + value


def too_long(size: int, bytes_left: int) -> NoReturn:
    if size <= bytes_left:
        raise MalformedRequest(f"a string of {size} bytes, more than {STRING_BYTES_MAX}")
    raise MalformedRequest(f"a size of {size} where {max(0, bytes_left)} bytes are left")


def too_many(count: int, bytes_left: int, objects_left: int) -> NoReturn:
    raise MalformedRequest(f"{count} elements, with {max(0, bytes_left)} bytes and {objects_left} objects left")


def null() -> NoReturn:
    raise MalformedRequest("null, or a negative size, where the field may not be null")


def wrong_tag_size(position: int, end: int) -> NoReturn:
    raise MalformedRequest(f"the tagged field's value and its stated size differ by {position - end} bytes")


@cache
def array_packer(letter: str) -> Callable[[int], Callable[..., bytes]]:
    """What packs so many equal numbers in a row. Cached by count, since most arrays are as long as a topic has replicas."""

    @lru_cache(maxsize=64)
    def packer(count: int) -> Callable[..., bytes]:
        return struct.Struct(f">{count}{letter}").pack

    return packer


Unpack = Callable[..., tuple[Any, ...]]


@cache
def array_unpacker(letter: str) -> Callable[[int], Unpack]:
    """What unpacks so many equal numbers in a row."""

    @lru_cache(maxsize=64)
    def unpacker(count: int) -> Unpack:
        return struct.Struct(f">{count}{letter}").unpack_from

    return unpacker
