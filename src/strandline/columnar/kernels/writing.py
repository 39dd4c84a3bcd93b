"""The kernels of the encoder: `measure_records` decides how many rows a batch takes, `write_records` writes them, and
`find_partitions` hashes keys.

Always true: a batch is written into exactly as many bytes as were measured, the same bytes as `records.record.encode_record` gives.
"""

from __future__ import annotations

from strandline.columnar.kernels.calls import BATCH_BYTES, BATCH_TIMESTAMP_MAX, Pointer
from strandline.columnar.kernels.primitives import copy, numpy, varint_bytes, write_varint

_SIZE_MAX = (1 << 31) - 1
_SEED = 0x9747B28C
_M = 0x5BD1E995
_UINT32 = 0xFFFF_FFFF


def measure_records(
    numbers: Pointer,
    first: int,
    last: int,
    timestamps: Pointer,
    key_sizes: Pointer,
    value_sizes: Pointer,
    header_starts: Pointer,
    header_counts: Pointer,
    header_key_sizes: Pointer,
    header_value_sizes: Pointer,
    bytes_max: int,
    body_sizes: Pointer,
    state: Pointer,
) -> int:
    """How many of the rows from `first` on fill the next batch, at least one; -1 if that one cannot be a record.

    `body_sizes` gets the length of each, and `state` what they take together and the largest of their timestamps.
    """
    used = 0
    base_timestamp = timestamps[numbers[first]]
    max_timestamp = base_timestamp
    for i in range(first, last):
        row = numbers[i]
        body = 1 + varint_bytes(timestamps[row] - base_timestamp) + varint_bytes(i - first)
        size = key_sizes[row]
        body += varint_bytes(size) + max(size, 0)
        size = value_sizes[row]
        body += varint_bytes(size) + max(size, 0)
        count = header_counts[row]
        body += varint_bytes(count)
        for header in range(header_starts[row], header_starts[row] + count):
            size = header_key_sizes[header]
            body += varint_bytes(size) + size
            size = header_value_sizes[header]
            body += varint_bytes(size) + max(size, 0)
        record = varint_bytes(body) + body
        if i > first and used + record > bytes_max:
            last = i
            break
        if body > _SIZE_MAX:
            return -1
        body_sizes[i] = body
        used += record
        max_timestamp = max(max_timestamp, timestamps[row])
    state[BATCH_BYTES] = used
    state[BATCH_TIMESTAMP_MAX] = max_timestamp
    return last - first


def write_records(
    numbers: Pointer,
    first: int,
    last: int,
    timestamps: Pointer,
    body_sizes: Pointer,
    keys: Pointer,
    key_starts: Pointer,
    key_sizes: Pointer,
    values: Pointer,
    value_starts: Pointer,
    value_sizes: Pointer,
    header_starts: Pointer,
    header_counts: Pointer,
    header_keys: Pointer,
    header_key_starts: Pointer,
    header_key_sizes: Pointer,
    header_values: Pointer,
    header_value_starts: Pointer,
    header_value_sizes: Pointer,
    target: Pointer,
    at: int,
) -> int:
    """Write the measured rows from `at` on, and return the position after them."""
    base_timestamp = timestamps[numbers[first]]
    for i in range(first, last):
        row = numbers[i]
        at = write_varint(target, at, body_sizes[i])
        target[at] = 0
        at = write_varint(target, at + 1, timestamps[row] - base_timestamp)
        at = write_varint(target, at, i - first)
        size = key_sizes[row]
        at = write_varint(target, at, size)
        if size > 0:
            copy(target, at, keys, key_starts[row], size)
            at += size
        size = value_sizes[row]
        at = write_varint(target, at, size)
        if size > 0:
            copy(target, at, values, value_starts[row], size)
            at += size
        count = header_counts[row]
        at = write_varint(target, at, count)
        for header in range(header_starts[row], header_starts[row] + count):
            size = header_key_sizes[header]
            at = write_varint(target, at, size)
            copy(target, at, header_keys, header_key_starts[header], size)
            at += size
            size = header_value_sizes[header]
            at = write_varint(target, at, size)
            if size > 0:
                copy(target, at, header_values, header_value_starts[header], size)
                at += size
    return at


def find_partitions(
    data: Pointer, starts: Pointer, sizes: Pointer, count: int, partitions_count: int, found: Pointer
) -> int:
    """MurmurHash2 with Kafka's seed, in 64-bit numbers of which 32 bits count; a null key has no partition."""
    for row in range(count):
        size = sizes[row]
        if size < 0:
            found[row] = -1
            continue
        at = starts[row]
        h = _SEED ^ (size & _UINT32)
        for _ in range(size >> 2):
            k = (
                numpy.int64(data[at])
                | numpy.int64(data[at + 1]) << 8
                | numpy.int64(data[at + 2]) << 16
                | numpy.int64(data[at + 3]) << 24
            )
            k = k * _M & _UINT32
            k = (k ^ k >> 24) * _M & _UINT32
            h = (h * _M & _UINT32) ^ k
            at += 4
        left = size & 3
        if left:
            tail = numpy.int64(data[at])
            if left > 1:
                tail |= numpy.int64(data[at + 1]) << 8
            if left > 2:
                tail |= numpy.int64(data[at + 2]) << 16
            h = (h ^ tail) * _M & _UINT32
        h = (h ^ h >> 13) * _M & _UINT32
        h ^= h >> 15
        found[row] = (h & 0x7FFF_FFFF) % partitions_count
    return count
