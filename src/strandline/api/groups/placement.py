"""Which partition of `__consumer_offsets` a group belongs to, and with it which broker coordinates it.

Always true: it is the one that Kafka finds, or a topic that Kafka wrote could not be taken over: Java's hash of the group id, which
counts UTF-16 units, modulo the number of partitions.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from sys import byteorder

REMEMBERED_MAX, REMEMBERED_LENGTH_MAX = 10_000, 255
"""Group ids whose hash is not computed again, if they are not too long: a busy group asks thousands of times a second."""

_UTF_16 = "utf-16-le" if byteorder == "little" else "utf-16-be"
_INT_MIN = -(1 << 31)


def partition_of(group_id: str, partition_count: int) -> int:
    short = len(group_id) <= REMEMBERED_LENGTH_MAX
    return (_remembered_hash(group_id) if short else _hash(group_id)) % partition_count


def _hash(text: str) -> int:
    """The absolute value of Java's `String.hashCode`; 0 for the one number that has none."""
    value = 0
    for unit in array("H", text.encode(_UTF_16, "surrogatepass")):
        value = (31 * value + unit) & 0xFFFF_FFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == _INT_MIN else abs(signed)


_remembered_hash = lru_cache(maxsize=REMEMBERED_MAX)(_hash)
