"""Produce (0) on the wire, versions 3-13, read and written by hand because everything a producer sends goes through here.

Always true: records are memoryviews into the frame, valid only while the frame is; a topic is its name up to version 12 and
its sixteen-byte id from 13 on. Whatever does not fit the frame is a MalformedRequest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import skip_tagged_fields
from strandline.wire.node_endpoints import NodeEndpoint, tagged
from strandline.wire.primitives import STRING_BYTES_MAX, too_long
from strandline.wire.primitives import encode_unsigned_varint as uvarint

KEY, VERSIONS = 0, range(3, 14)
FLEXIBLE_SINCE = 9
LEADER_SINCE = 10
TOPIC_ID_SINCE = 13
ENTRIES_MAX = 10_000
"""Topics and partitions in one request: some 32 MiB of Python objects at the worst."""

_ACKS_TIMEOUT = struct.Struct(">hi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INDEX_SIZE = struct.Struct(">ii")

_NO_TAGS_3 = bytes(3)
_AFTER_ONE = bytes(6)
"""No tagged fields of the topic, no throttling, no tagged fields of the reply."""

PartitionData = tuple[int, memoryview | None]
TopicData = tuple[str | bytes, list[PartitionData]]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicData]


class PartitionResponse(NamedTuple):
    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()
    """Index within its batch and sentence of each record that is to blame (KIP-467)."""
    leader_id: int = -1
    leader_epoch: int = -1


def parse(version: int, frame: memoryview, position: int) -> ProduceRequest:
    try:
        if version >= FLEXIBLE_SINCE:
            return _parse_flexible(version, frame, position)
        return _parse_plain(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"Produce v{version}: {error}") from None


def parse_one(version: int, frame: memoryview, position: int) -> tuple[int, int, str | bytes, int, memoryview] | None:
    """Acks, timeout, topic, partition and records of a request with one batch and no transaction, as nearly all have.

    None for any other, sound or not: `parse` then says what it is.
    """
    try:
        if version < FLEXIBLE_SINCE or frame[position] or frame[position + 7] != 2:
            return None
        acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position + 1)
        position += 8
        topic: str | bytes
        if version >= TOPIC_ID_SINCE:
            end = position + 16
            topic = bytes(frame[position:end])
        else:
            size = frame[position]
            if size >= 0x80:
                return None
            end = position + size
            topic = str(frame[position + 1 : end], "utf-8")
        if frame[end] != 2:
            return None
        (index,) = _INT32.unpack_from(frame, end + 1)
        size, position = _compact_size(frame, end + 5)
        end = position + size
        # Three times no tagged fields, and that is all.
        if size < 0 or frame[end:] != _NO_TAGS_3:
            return None
        return acks, timeout_ms, topic, index, frame[position:end]
    except (struct.error, IndexError, UnicodeDecodeError, MalformedRequest):
        return None


def _parse_flexible(version: int, frame: memoryview, position: int) -> ProduceRequest:
    # A size that fits one byte is read in place. Slices never reach past the frame, so one look at the end finds every lie.
    size, position = _compact_size(frame, position)
    transactional_id = None
    if size >= 0:
        if size > STRING_BYTES_MAX:
            too_long(size, len(frame) - position)
        transactional_id = str(frame[position : position + size], "utf-8")
        position += size
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = _compact_size(frame, position + 6)
    entries_left = ENTRIES_MAX - topic_count
    if not 0 <= entries_left <= ENTRIES_MAX:
        _refuse_count(topic_count)
    topics: list[TopicData] = []
    for _ in range(topic_count):
        topic: str | bytes
        if version >= TOPIC_ID_SINCE:
            topic = bytes(frame[position : position + 16])
            position += 16
        else:
            size = frame[position] - 1
            position += 1
            if size >= 0x7F:
                size, position = _compact_size(frame, position - 1)
                if size > STRING_BYTES_MAX:
                    too_long(size, len(frame) - position)
            elif size < 0:
                raise MalformedRequest("Produce: a topic without a name")
            topic = str(frame[position : position + size], "utf-8")
            position += size
        partition_count = frame[position] - 1
        position += 1
        if partition_count >= 0x7F:
            partition_count, position = _compact_size(frame, position - 1)
        entries_left -= partition_count
        if partition_count < 0 or entries_left < 0:
            _refuse_count(partition_count)
        partitions: list[PartitionData] = []
        for _ in range(partition_count):
            (index,) = _INT32.unpack_from(frame, position)
            size, position = _compact_size(frame, position + 4)
            if size >= 0:
                end = position + size
                partitions.append((index, frame[position:end]))
            else:
                end = position
                partitions.append((index, None))
            position = end + 1 if frame[end] == 0 else skip_tagged_fields(frame, end)
        topics.append((topic, partitions))
        position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    if position > len(frame):
        raise MalformedRequest(f"Produce: it ends {position - len(frame)} bytes beyond its frame")
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _compact_size(frame: memoryview, position: int) -> tuple[int, int]:
    """A compact length (-1 for null) and the position after it."""
    size = frame[position]
    position += 1
    shift = 7
    while size >> shift:
        if shift > 28:
            raise MalformedRequest("Produce: a varint has more than five bytes")
        size += (frame[position] - 1) << shift
        position += 1
        shift += 7
    return size - 1, position


def _parse_plain(frame: memoryview, position: int) -> ProduceRequest:
    (size,) = _INT16.unpack_from(frame, position)
    position += 2
    transactional_id = None
    if size >= 0:
        transactional_id = str(frame[position : position + size], "utf-8")
        position += size
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = _count(frame, position + 6, ENTRIES_MAX)
    entries_left = ENTRIES_MAX - topic_count
    topics: list[TopicData] = []
    for _ in range(topic_count):
        (size,) = _INT16.unpack_from(frame, position)
        position += 2
        if size < 0 or size > len(frame) - position:
            raise MalformedRequest(f"Produce: a topic name of {size} bytes")
        topic = str(frame[position : position + size], "utf-8")
        partition_count, position = _count(frame, position + size, entries_left)
        entries_left -= partition_count
        partitions: list[PartitionData] = []
        for _ in range(partition_count):
            index, size = _INDEX_SIZE.unpack_from(frame, position)
            position += 8
            if size > len(frame) - position:
                raise MalformedRequest(f"Produce: records of {size} bytes, but {len(frame) - position} are left")
            partitions.append((index, frame[position : position + size] if size >= 0 else None))
            position += max(size, 0)
        topics.append((topic, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _count(frame: memoryview, position: int, entries_left: int) -> tuple[int, int]:
    (count,) = _INT32.unpack_from(frame, position)
    position += 4
    if not 0 <= count <= min(len(frame) - position, entries_left):
        _refuse_count(count)
    return count, position


def _refuse_count(count: int) -> NoReturn:
    raise MalformedRequest(
        f"Produce: an array of {count} does not fit the frame, or {ENTRIES_MAX} topics and partitions"
    )


_PLAIN_3 = struct.Struct(">ihqq")
_PLAIN_5 = struct.Struct(">ihqqq")
_INDEX_TEXT = struct.Struct(">ih")
_FINE_9 = struct.Struct(">ihqqqBBB")
_LEADER = struct.Struct(">BBBiiB")


def write_one(
    topic: str | bytes, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> bytes:
    """The reply to a request of one batch that went well, in a flexible version."""
    return (
        _before_one(topic)
        + _FINE_9.pack(index, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0)
        + _AFTER_ONE
    )


@lru_cache(4096)
def _before_one(topic: str | bytes) -> bytes:
    """One topic, and one partition of it."""
    if isinstance(topic, bytes):
        return b"\2" + topic + b"\2"
    name = topic.encode()
    return b"\2" + uvarint(len(name) + 1) + name + b"\2"


def write_response(
    version: int,
    topics: Sequence[tuple[str | bytes, Sequence[PartitionResponse]]],
    throttle_time_ms: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    if version >= FLEXIBLE_SINCE:
        return _write_flexible(version, topics, throttle_time_ms, endpoints if version >= LEADER_SINCE else ())
    out = [_INT32.pack(len(topics))]
    for topic, partitions in topics:
        assert isinstance(topic, str)
        name = topic.encode()
        out.append(_INT16.pack(len(name)) + name + _INT32.pack(len(partitions)))
        for p in partitions:
            if version < 5:
                out.append(_PLAIN_3.pack(p.partition, p.error_code, p.base_offset, p.log_append_time_ms))
            elif version < 8:
                out.append(
                    _PLAIN_5.pack(p.partition, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
                )
            else:
                out.append(
                    _PLAIN_5.pack(p.partition, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
                )
                out.append(_INT32.pack(len(p.record_errors)))
                for index, sentence in p.record_errors:
                    encoded = sentence.encode()
                    out.append(_INDEX_TEXT.pack(index, len(encoded)) + encoded)
                text = None if p.error_message is None else p.error_message.encode()
                out.append(_INT16.pack(-1 if text is None else len(text)) + (text or b""))
    out.append(_INT32.pack(throttle_time_ms))
    return b"".join(out)


def _write_flexible(
    version: int,
    topics: Sequence[tuple[str | bytes, Sequence[PartitionResponse]]],
    throttle_time_ms: int,
    endpoints: Sequence[NodeEndpoint],
) -> bytes:
    out = [uvarint(len(topics) + 1)]
    for topic, partitions in topics:
        if isinstance(topic, str):
            name = topic.encode()
            out.append(uvarint(len(name) + 1) + name)
        else:
            out.append(topic)
        out.append(uvarint(len(partitions) + 1))
        for p in partitions:
            if p.error_code == 0:
                # No record errors, no error message, no tagged fields.
                out.append(
                    _FINE_9.pack(p.partition, 0, p.base_offset, p.log_append_time_ms, p.log_start_offset, 1, 0, 0)
                )
            else:
                out.append(_failed_partition(version, p))
        out.append(b"\0")
    out.append(_INT32.pack(throttle_time_ms) + tagged(endpoints))
    return b"".join(out)


def _failed_partition(version: int, p: PartitionResponse) -> bytes:
    fixed = _PLAIN_5.pack(p.partition, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
    text = b"\0"
    if p.error_message is not None:
        encoded = p.error_message.encode()
        text = uvarint(len(encoded) + 1) + encoded
    blamed = b"\1"
    if p.record_errors:
        parts = [uvarint(len(p.record_errors) + 1)]
        for index, sentence in p.record_errors:
            encoded = sentence.encode()
            parts += (_INT32.pack(index), uvarint(len(encoded) + 1), encoded, b"\0")
        blamed = b"".join(parts)
    if version >= LEADER_SINCE and p.leader_id >= 0:
        return fixed + blamed + text + _LEADER.pack(1, 0, 9, p.leader_id, p.leader_epoch, 0)
    return fixed + blamed + text + b"\0"
