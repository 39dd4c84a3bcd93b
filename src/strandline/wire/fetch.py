"""Fetch (1) on the wire, versions 4-18, read and written by hand because everything a consumer or follower reads goes through here.

Always true: a topic is its name up to version 12 and its sixteen-byte id from 13 on; records are handed on as they came from
the file, never copied into a larger buffer. Whatever does not fit the frame is a MalformedRequest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from strandline.ports import Buffer
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import TAGS_MAX, skip_tagged_fields
from strandline.wire.node_endpoints import NodeEndpoint, tagged
from strandline.wire.primitives import STRING_BYTES_MAX, skip_tag, too_long
from strandline.wire.primitives import encode_unsigned_varint as uvarint

KEY, VERSIONS = 1, range(4, 19)
FLEXIBLE_SINCE = 12
TOPIC_ID_SINCE = 13
SESSION_SINCE = 7
REPLICA_STATE_SINCE = 15
ENDPOINTS_SINCE = 16
ENTRIES_MAX = 50_000
"""Topics and partitions in one request, forgotten ones included: some 64 MiB of Python objects at the worst."""
BROKER_ENTRIES_MAX = 500_000
"""The same where only brokers ask: one of Apache Kafka names all that it follows at once."""
ENTRY_BYTES_MIN = 4
"""An entry of any version has more."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_REPLICA_STATE = struct.Struct(">iq")


class FetchPartition(NamedTuple):
    """What is asked of one partition."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class FetchRequest(NamedTuple):
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[str | bytes, list[FetchPartition]]]
    forgotten: list[tuple[str | bytes, list[int]]]
    rack_id: str
    cluster_id: str | None


class FetchedPartition(NamedTuple):
    """What is answered for one partition."""

    partition: int
    error_code: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Buffer = b""
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer id and first offset of aborted transactions; None for readers that do not ask."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """Epoch and end offset where the follower's log parts from ours."""
    current_leader: tuple[int, int] | None = None
    """Leader id and epoch, for a client that asked the wrong broker."""
    snapshot_id: tuple[int, int] | None = None
    """End offset and epoch of the snapshot to fetch instead."""


_PARTITION = {
    4: struct.Struct(">iqi"),
    5: struct.Struct(">iqqi"),
    9: struct.Struct(">iiqqi"),
    12: struct.Struct(">iiqiqi"),
}
_HEAD_4 = struct.Struct(">iiiib")
_HEAD_7 = struct.Struct(">iiiibii")
_HEAD_15 = struct.Struct(">iiibii")


class _Frame:
    """A place in the frame; every size is checked against what is left."""

    __slots__ = ("at", "entries_left", "entries_max", "flexible", "frame")

    def __init__(self, frame: memoryview, at: int, flexible: bool, entries_max: int) -> None:
        self.frame = frame
        self.at = at
        self.flexible = flexible
        self.entries_left = self.entries_max = entries_max

    def take(self, fields: struct.Struct) -> tuple[int, ...]:
        values = fields.unpack_from(self.frame, self.at)
        self.at += fields.size
        return values

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.frame[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise MalformedRequest("Fetch: a varint has more than five bytes")
        return value

    def size(self) -> int:
        """A compact length; -1 for null."""
        return self._fits(self.varint() - 1)

    def count(self) -> int:
        count = self.size() if self.flexible else self._fits(self.take(_INT32)[0])
        self.entries_left -= count
        if count < 0 or self.entries_left < 0:
            raise MalformedRequest(f"Fetch: an array of {count}, or more than {self.entries_max} topics and partitions")
        return count

    def _fits(self, size: int) -> int:
        if size > len(self.frame) - self.at:
            raise MalformedRequest(f"Fetch: a size of {size}, but {len(self.frame) - self.at} bytes are left")
        return size

    def text(self) -> str:
        size = self.size() if self.flexible else self._fits(self.take(_INT16)[0])
        if size < 0:
            raise MalformedRequest("Fetch: null where a text must be")
        if size > STRING_BYTES_MAX:
            too_long(size, len(self.frame) - self.at)
        text = str(self.frame[self.at : self.at + size], "utf-8")
        self.at += size
        return text

    def topic(self, by_id: bool) -> str | bytes:
        if not by_id:
            return self.text()
        self._fits(16)
        topic_id = bytes(self.frame[self.at : self.at + 16])
        self.at += 16
        return topic_id

    def skip_tags(self) -> None:
        if self.flexible:
            self.at = skip_tagged_fields(self.frame, self.at)


def parse(version: int, frame: memoryview, position: int, entries_max: int = ENTRIES_MAX) -> FetchRequest:
    try:
        return _parse(version, _Frame(frame, position, version >= FLEXIBLE_SINCE, entries_max))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"Fetch v{version}: {error}") from None


def _parse(version: int, f: _Frame) -> FetchRequest:
    replica_id, replica_epoch, session_id, session_epoch = -1, -1, 0, -1
    if version >= 15:
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = f.take(_HEAD_15)
    elif version >= SESSION_SINCE:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = f.take(_HEAD_7)
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = f.take(_HEAD_4)
    topics = [_parse_topic(version, f) for _ in range(f.count())]
    forgotten: list[tuple[str | bytes, list[int]]] = []
    if version >= SESSION_SINCE:
        for _ in range(f.count()):
            topic = f.topic(version >= TOPIC_ID_SINCE)
            forgotten.append((topic, [f.take(_INT32)[0] for _ in range(f.count())]))
            f.skip_tags()
    rack_id = f.text() if version >= 11 else ""
    cluster_id = None
    if f.flexible:
        cluster_id, replica_id, replica_epoch = _parse_tags(version, f, replica_id)
    return FetchRequest(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        cluster_id,
    )


def _parse_topic(version: int, f: _Frame) -> tuple[str | bytes, list[FetchPartition]]:
    topic = f.topic(version >= TOPIC_ID_SINCE)
    partitions = []
    for _ in range(f.count()):
        epoch = last_epoch = log_start_offset = -1
        if version >= 12:
            index, epoch, offset, last_epoch, log_start_offset, max_bytes = f.take(_PARTITION[12])
        elif version >= 9:
            index, epoch, offset, log_start_offset, max_bytes = f.take(_PARTITION[9])
        elif version >= 5:
            index, offset, log_start_offset, max_bytes = f.take(_PARTITION[5])
        else:
            index, offset, max_bytes = f.take(_PARTITION[4])
        partitions.append(FetchPartition(index, epoch, offset, last_epoch, log_start_offset, max_bytes))
        # Replica directory id and high watermark (17, 18) ride in tagged fields that the leader does not need.
        f.skip_tags()
    f.skip_tags()
    return topic, partitions


def _parse_tags(version: int, f: _Frame, replica_id: int) -> tuple[str | None, int, int]:
    cluster_id, replica_epoch, last_tag = None, -1, -1
    count = f.varint()
    if count > TAGS_MAX:
        raise MalformedRequest(f"Fetch: {count} tagged fields")
    for _ in range(count):
        tag, size = f.varint(), f.varint()
        if tag <= last_tag or size > len(f.frame) - f.at:
            raise MalformedRequest(f"Fetch: tag {tag} of {size} bytes is out of order or out of the frame")
        last_tag, end = tag, f.at + size
        if tag == 0:
            size = f.size()
            if size > STRING_BYTES_MAX:
                too_long(size, len(f.frame) - f.at)
            cluster_id = None if size < 0 else str(f.frame[f.at : f.at + size], "utf-8")
            f.at += max(size, 0)
        elif tag == 1 and version >= REPLICA_STATE_SINCE:
            replica_id, replica_epoch = f.take(_REPLICA_STATE)
            f.skip_tags()
        else:
            f.at = skip_tag(tag, f.at, end)
        if f.at != end:
            raise MalformedRequest(f"Fetch: tag {tag} has {size} bytes, its value has {f.at - end} more")
    return cluster_id, replica_id, replica_epoch


_ANSWER_4 = struct.Struct(">ihqq")
_ANSWER_5 = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_DIVERGING = struct.Struct(">BBiqB")
_LEADER = struct.Struct(">BBiiB")
_SNAPSHOT = struct.Struct(">BBqiB")
_SESSION = struct.Struct(">ihi")


def write_response(
    version: int,
    topics: Sequence[tuple[str | bytes, Sequence[FetchedPartition]]],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> list[Buffer]:
    """The body as a list of buffers: record bytes stand in it as they are."""
    flexible = version >= FLEXIBLE_SINCE
    head = bytearray()
    if version >= SESSION_SINCE:
        head += _SESSION.pack(throttle_time_ms, error_code, session_id)
    else:
        head += _INT32.pack(throttle_time_ms)
    out: list[Buffer] = []
    _count(head, flexible, len(topics))
    for topic, partitions in topics:
        if isinstance(topic, str):
            name = topic.encode()
            head += uvarint(len(name) + 1) + name if flexible else _INT16.pack(len(name)) + name
        else:
            head += topic
        _count(head, flexible, len(partitions))
        for p in partitions:
            _write_partition(version, flexible, head, p)
            if p.records:
                out += (head, p.records)
                head = bytearray()
            if flexible:
                head += _tags(p) if p.diverging_epoch or p.current_leader or p.snapshot_id else b"\0"
        if flexible:
            head += b"\0"
    if flexible:
        head += tagged(endpoints) if version >= ENDPOINTS_SINCE else b"\0"
    out.append(head)
    return out


def _count(head: bytearray, flexible: bool, count: int) -> None:
    head += uvarint(count + 1) if flexible else _INT32.pack(count)


def _write_partition(version: int, flexible: bool, head: bytearray, p: FetchedPartition) -> None:
    if version >= 5:
        head += _ANSWER_5.pack(p.partition, p.error_code, p.high_watermark, p.last_stable_offset, p.log_start_offset)
    else:
        head += _ANSWER_4.pack(p.partition, p.error_code, p.high_watermark, p.last_stable_offset)
    if p.aborted is None:
        head += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        _count(head, flexible, len(p.aborted))
        for aborted in p.aborted:
            head += _ABORTED.pack(*aborted) + (b"\0" if flexible else b"")
    if version >= 11:
        head += _INT32.pack(p.preferred_read_replica)
    head += uvarint(len(p.records) + 1) if flexible else _INT32.pack(len(p.records))


def _tags(p: FetchedPartition) -> bytes:
    tags = []
    if p.diverging_epoch is not None:
        tags.append(_DIVERGING.pack(0, 13, *p.diverging_epoch, 0))
    if p.current_leader is not None:
        tags.append(_LEADER.pack(1, 9, *p.current_leader, 0))
    if p.snapshot_id is not None:
        tags.append(_SNAPSHOT.pack(2, 13, *p.snapshot_id, 0))
    return uvarint(len(tags)) + b"".join(tags)
