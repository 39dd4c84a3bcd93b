"""The answer to a Fetch of one partition, read without copying its records.

Records are nearly all of such an answer. They are cut out and kept as a view of the frame; the few bytes around them
are read as any other message.

Always true: the message has no records of the first partition, the view has all of them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.core.connection import RawReply
from strandline.client.errors import ProtocolViolation
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import is_flexible, skip_tagged_fields
from strandline.wire.primitives import read_unsigned_varint

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchResponse

FETCH: Final = 1
SESSION_SINCE, LOG_START_SINCE, PREFERRED_SINCE, TOPIC_ID_SINCE = 7, 5, 11, 13

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_THROTTLE_BYTES, _ERROR_AND_SESSION_BYTES, _TOPIC_ID_BYTES = 4, 6, 16
_INDEX_TO_STABLE_OFFSET_BYTES = 4 + 2 + 8 + 8
_ABORTED_BYTES = 16
NOTHING = memoryview(b"")


class FetchAnswer(NamedTuple):
    message: FetchResponse
    records: memoryview


class _Cut(NamedTuple):
    """Where the first partition's records are, and the size in front of them."""

    size_at: int
    begin: int
    end: int


def read_answer(reply: RawReply) -> FetchAnswer:
    """ProtocolViolation if it cannot be read."""
    frame = memoryview(reply.frame)
    try:
        cut = _find_records(reply.version, frame, reply.position)
        if cut is None:
            body = bytes(frame[reply.position :])
            return FetchAnswer(messages.decode_response(FETCH, reply.version, body), NOTHING)
        none = b"\x01" if is_flexible(FETCH, reply.version) else bytes(4)
        body = b"".join((frame[reply.position : cut.size_at], none, frame[cut.end :]))
        return FetchAnswer(messages.decode_response(FETCH, reply.version, body), frame[cut.begin : cut.end])
    except (MalformedRequest, IndexError, struct.error) as error:
        raise ProtocolViolation(f"an answer to Fetch cannot be read: {error}") from None


def _find_records(version: int, frame: memoryview, position: int) -> _Cut | None:
    """None if there is no partition in the answer, or its records are null."""
    flexible = is_flexible(FETCH, version)
    position += _THROTTLE_BYTES + (_ERROR_AND_SESSION_BYTES if version >= SESSION_SINCE else 0)
    topics, position = _count(frame, position, flexible)
    if topics <= 0:
        return None
    if version >= TOPIC_ID_SINCE:
        position += _TOPIC_ID_BYTES
    elif flexible:
        size, position = _count(frame, position, flexible)
        position += size
    else:
        position += _INT16.size + _INT16.unpack_from(frame, position)[0]
    partitions, position = _count(frame, position, flexible)
    if partitions <= 0:
        return None
    position += _INDEX_TO_STABLE_OFFSET_BYTES + (8 if version >= LOG_START_SINCE else 0)
    aborted, position = _count(frame, position, flexible)
    for _ in range(aborted):
        position += _ABORTED_BYTES
        position = skip_tagged_fields(frame, position) if flexible else position
        if position > len(frame):
            raise MalformedRequest("the bytes end among the aborted transactions")
    if version >= PREFERRED_SINCE:
        position += 4
    size, begin = _count(frame, position, flexible)
    if size < 0:
        return None
    if size > len(frame) - begin:
        raise MalformedRequest(f"records of {size} bytes where {len(frame) - begin} are left")
    return _Cut(position, begin, begin + size)


def _count(frame: memoryview, position: int, flexible: bool) -> tuple[int, int]:
    """A count or size and the position after it; -1 is null."""
    if flexible:
        count, position = read_unsigned_varint(frame, position)
        return count - 1, position
    return _INT32.unpack_from(frame, position)[0], position + _INT32.size
