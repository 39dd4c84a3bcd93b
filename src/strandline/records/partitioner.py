"""Which partition a key belongs to, as every Kafka client must agree.

Always true: the same key and number of partitions give the same partition here as in Java's default partitioner.
"""

from __future__ import annotations

import struct
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_UINT32: Final = 0xFFFF_FFFF
_INT31: Final = 0x7FFF_FFFF


def partition_for(key: bytes, partitions_count: int) -> int:
    return (murmur2(key) & _INT31) % partitions_count


def murmur2(data: bytes) -> int:
    """MurmurHash2 of 32 bits with Kafka's seed, unsigned."""
    length = len(data)
    words = length // 4
    h = _SEED ^ length
    for k in struct.unpack_from(f"<{words}I", data):
        k = k * _M & _UINT32
        h = (h * _M & _UINT32) ^ ((k ^ k >> 24) * _M & _UINT32)
    tail = data[words * 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _UINT32
    h = (h ^ h >> 13) * _M & _UINT32
    return h ^ h >> 15
