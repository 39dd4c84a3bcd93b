"""Fetch (1) on the wire as a follower asks it, versions 12-18: the request written and the response read by hand.

Both happen once per round of replication, and acks=all waits for that round.

Always true: records are views into the frame, valid as long as the frame is; every size is checked against the frame, and
whatever does not fit is a MalformedRequest. A topic is its name in version 12 and its sixteen-byte id from 13 on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from strandline.wire.errors import MalformedRequest
from strandline.wire.fetch import REPLICA_STATE_SINCE, TOPIC_ID_SINCE, FetchedPartition, FetchRequest
from strandline.wire.headers import skip_tagged_fields
from strandline.wire.primitives import encode_unsigned_varint as uvarint
from strandline.wire.primitives import next_tag, read_unsigned_varint, skip_tag, skip_tags

VERSIONS = range(12, 19)

_HEAD = struct.Struct(">iiiibii")
_HEAD_WITHOUT_REPLICA = struct.Struct(">iiibii")
_PARTITION = struct.Struct(">iiqiqiB")
"""The last byte is the count of its tagged fields: replica directory and high watermark are for the metadata log alone."""
_INT32 = struct.Struct(">i")
_REPLICA_STATE_TAG = struct.Struct(">BBBiqB")
_REPLICA_STATE_BYTES = 13


def write_request(version: int, request: FetchRequest) -> bytes:
    """The body. The rack and the cluster id are left out: the first is a consumer's, the second the quorum's."""
    assert version in VERSIONS, version
    limits = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level)
    session = (request.session_id, request.session_epoch)
    if version >= REPLICA_STATE_SINCE:
        tail = _REPLICA_STATE_TAG.pack(1, 1, _REPLICA_STATE_BYTES, request.replica_id, request.replica_epoch, 0)
        parts = [_HEAD_WITHOUT_REPLICA.pack(*limits, *session)]
    else:
        tail = b"\0"
        parts = [_HEAD.pack(request.replica_id, *limits, *session)]
    parts.append(uvarint(len(request.topics) + 1))
    for topic, partitions in request.topics:
        parts.append(_topic(topic))
        parts.append(uvarint(len(partitions) + 1))
        for p in partitions:
            parts.append(_PARTITION.pack(*p, 0))
        parts.append(b"\0")
    parts.append(uvarint(len(request.forgotten) + 1))
    for topic, indexes in request.forgotten:
        parts += (_topic(topic), uvarint(len(indexes) + 1), *map(_INT32.pack, indexes), b"\0")
    parts.append(b"\x01")  # an empty rack
    parts.append(tail)
    return b"".join(parts)


def _topic(topic: str | bytes) -> bytes:
    if isinstance(topic, str):
        name = topic.encode()
        return uvarint(len(name) + 1) + name
    return topic


RESPONSE_ENTRIES_MAX = 500_000
"""Topics and partitions in one answer: all that a follower has at one leader may be in it."""


class FetchResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: list[tuple[str | bytes, list[FetchedPartition]]]


_RESPONSE = struct.Struct(">ihi")
_ANSWER = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_DIVERGING = struct.Struct(">iq")
_LEADER = struct.Struct(">ii")
_SNAPSHOT = struct.Struct(">qi")
_ANSWER_BYTES_MIN = _ANSWER.size + 1 + _INT32.size + 1 + 1
_TOPIC_BYTES_MIN = 3
_ABORTED_BYTES = _ABORTED.size + 1


def parse_response(version: int, frame: memoryview, position: int) -> FetchResponse:
    """The response whose body begins here."""
    assert version in VERSIONS, version
    try:
        return _parse_response(version, frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"Fetch v{version}, response: {error}") from None


def _parse_response(version: int, frame: memoryview, at: int) -> FetchResponse:
    throttle_time_ms, error_code, session_id = _RESPONSE.unpack_from(frame, at)
    at += _RESPONSE.size
    count, at = _count(frame, at, _TOPIC_BYTES_MIN)
    entries_left = RESPONSE_ENTRIES_MAX
    topics: list[tuple[str | bytes, list[FetchedPartition]]] = []
    for _ in range(count):
        topic: str | bytes
        if version >= TOPIC_ID_SINCE:
            end = at + 16
            topic = bytes(frame[at:end])
        else:
            size, at = _size(frame, at)
            if size < 0:
                raise MalformedRequest("Fetch: a topic without a name")
            end = at + size
            topic = str(frame[at:end], "utf-8")
        partition_count, at = _count(frame, end, _ANSWER_BYTES_MIN)
        entries_left -= 1 + partition_count
        if entries_left < 0:
            raise MalformedRequest(f"Fetch: more than {RESPONSE_ENTRIES_MAX} topics and partitions")
        answers = []
        for _ in range(partition_count):
            answer, at = _parse_answer(frame, at)
            answers.append(answer)
        at = at + 1 if not frame[at] else skip_tagged_fields(frame, at, "Fetch, topic")
        topics.append((topic, answers))
    # Here the addresses of leaders stand, for clients; followers take them from the metadata log.
    skip_tagged_fields(frame, at, "Fetch")
    return FetchResponse(throttle_time_ms, error_code, session_id, topics)


def _parse_answer(frame: memoryview, at: int) -> tuple[FetchedPartition, int]:
    index, error_code, high_watermark, last_stable_offset, log_start_offset = _ANSWER.unpack_from(frame, at)
    at += _ANSWER.size
    aborted: Sequence[tuple[int, int]] | None = None
    if frame[at]:
        aborted, at = _parse_aborted(frame, at)
    else:
        at += 1
    (preferred_read_replica,) = _INT32.unpack_from(frame, at)
    size, at = _size(frame, at + _INT32.size)
    end = at + size if size > 0 else at
    records = frame[at:end]
    diverging_epoch = current_leader = snapshot_id = None
    if frame[end]:
        diverging_epoch, current_leader, snapshot_id, end = _parse_tags(frame, end)
    else:
        end += 1
    answer = FetchedPartition(
        index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        records,
        aborted,
        preferred_read_replica,
        diverging_epoch,
        current_leader,
        snapshot_id,
    )
    return answer, end


def _parse_aborted(frame: memoryview, at: int) -> tuple[list[tuple[int, int]], int]:
    count, at = _count(frame, at, _ABORTED_BYTES)
    aborted = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(frame, at)
        aborted.append((producer_id, first_offset))
        at = skip_tagged_fields(frame, at + _ABORTED.size, "Fetch, aborted transaction")
    return aborted, at


_Pair = tuple[int, int]


def _parse_tags(frame: memoryview, at: int) -> tuple[_Pair | None, _Pair | None, _Pair | None, int]:
    """Diverging epoch, current leader and snapshot id, where they are given, and the position after them."""
    found: list[_Pair | None] = [None, None, None]
    skip_tags(frame, at, RESPONSE_ENTRIES_MAX)  # bounds the section as a whole
    count, at = read_unsigned_varint(frame, at)
    tag = -1
    for _ in range(count):
        tag, at, end = next_tag(frame, at, tag)
        if tag < len(found):
            fields = (_DIVERGING, _LEADER, _SNAPSHOT)[tag]
            first, second = fields.unpack_from(frame, at)
            found[tag] = first, second
            if skip_tagged_fields(frame, at + fields.size, "Fetch, tagged field") != end:
                raise MalformedRequest(f"Fetch: the value of tag {tag} and its stated size differ")
            at = end
        else:
            at = skip_tag(tag, at, end)
    return found[0], found[1], found[2], at


def _size(frame: memoryview, at: int) -> tuple[int, int]:
    """A compact length, -1 for null, and the position after it. So many bytes are there."""
    size = frame[at]
    if size < 0x80:
        at += 1
    else:
        size, at = read_unsigned_varint(frame, at)
    if size - 1 > len(frame) - at:
        raise MalformedRequest(f"Fetch: a size of {size - 1}, but {len(frame) - at} bytes are left")
    return size - 1, at


def _count(frame: memoryview, at: int, element_bytes_min: int) -> tuple[int, int]:
    """The length of an array, none for null, and the position after it. So many elements may be there."""
    count = frame[at]
    if count < 0x80:
        at += 1
    else:
        count, at = read_unsigned_varint(frame, at)
    count = count - 1 if count else 0
    if count * element_bytes_min > len(frame) - at:
        raise MalformedRequest(f"Fetch: an array of {count}, but {len(frame) - at} bytes are left")
    return count, at
