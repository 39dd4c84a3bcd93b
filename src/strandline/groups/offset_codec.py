"""Committed offsets to and from bytes, by hand, since they are nearly all of `__consumer_offsets`.

Always true: what is read and written here is what the general codec reads and writes (`framing.py`). Whatever is out of
the ordinary (another version, metadata that is not short, a tagged field that is new, bytes that end too soon) is left
to it: None.
"""

from __future__ import annotations

import struct

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups.records import NO_TIMESTAMP, OffsetCommitKey, OffsetCommitValue
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.sharing import Shared, unfrozen

VERSION = 4
METADATA_SIZE_MAX = 0x7E
"""A compact string of so many bytes has a size of one byte."""

_ONE_TAG, _ID_TAG, _ID_SIZE = 1, 0, 16
_KEY_HEAD = struct.Struct(">hh")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_VALUE_HEAD = struct.Struct(">hqiB")
_TAIL = struct.Struct(">qB")
_TAIL_WITH_ID = struct.Struct(">qBBB16s")
_KEY_START = _INT16.pack(OffsetCommitKey.TYPE)
_VALUE_START = _INT16.pack(VERSION)
_Key, _Value = unfrozen(OffsetCommitKey), unfrozen(OffsetCommitValue)
_new = object.__new__
_IDS: Shared[bytes, Uuid] = Shared(Uuid)


def encode(record: CoordinatorRecord) -> tuple[bytes, bytes] | None:
    key, value = record
    if (
        type(key) is not OffsetCommitKey
        or type(value) is not OffsetCommitValue
        or value.expire_timestamp != NO_TIMESTAMP
    ):
        return None
    group, topic, metadata = key.group.encode(), key.topic.encode(), value.metadata.encode()
    if len(metadata) > METADATA_SIZE_MAX:
        return None
    if value.topic_id == ZERO_UUID:
        tail = _TAIL.pack(value.commit_timestamp, 0)
    else:
        tail = _TAIL_WITH_ID.pack(value.commit_timestamp, _ONE_TAG, _ID_TAG, _ID_SIZE, value.topic_id)
    return (
        _KEY_HEAD.pack(OffsetCommitKey.TYPE, len(group))
        + group
        + _INT16.pack(len(topic))
        + topic
        + _INT32.pack(key.partition),
        _VALUE_HEAD.pack(VERSION, value.offset, value.leader_epoch, len(metadata) + 1) + metadata + tail,
    )


def decode(key: bytes, value: bytes) -> CoordinatorRecord | None:
    if not key.startswith(_KEY_START) or not value.startswith(_VALUE_START):
        return None
    try:
        return CoordinatorRecord(_decode_key(key), _decode_value(value))
    except (struct.error, IndexError, UnicodeDecodeError, _Unusual):
        return None


class _Unusual(Exception):
    """Not what is read here."""


def _decode_key(data: bytes) -> OffsetCommitKey:
    _, size = _KEY_HEAD.unpack_from(data)
    topic_at = _KEY_HEAD.size + size + _INT16.size
    partition_at = topic_at + _INT16.unpack_from(data, topic_at - _INT16.size)[0]
    if size < 0 or partition_at < topic_at:
        raise _Unusual
    key = _new(_Key)
    key.group = data[_KEY_HEAD.size : topic_at - _INT16.size].decode()
    key.topic = data[topic_at:partition_at].decode()
    (key.partition,) = _INT32.unpack_from(data, partition_at)
    key.__class__ = OffsetCommitKey
    return key  # type: ignore[no-any-return]


def _decode_value(data: bytes) -> OffsetCommitValue:
    value = _new(_Value)
    _, value.offset, value.leader_epoch, size = _VALUE_HEAD.unpack_from(data)
    end = _VALUE_HEAD.size + size - 1
    if not 1 <= size <= METADATA_SIZE_MAX + 1:
        raise _Unusual
    value.metadata = data[_VALUE_HEAD.size : end].decode()
    if len(data) - end == _TAIL_WITH_ID.size:
        value.commit_timestamp, tags, tag, tag_size, topic_id = _TAIL_WITH_ID.unpack_from(data, end)
        if (tags, tag, tag_size) != (_ONE_TAG, _ID_TAG, _ID_SIZE):
            raise _Unusual
        value.topic_id = _IDS[topic_id]
    else:
        value.commit_timestamp, tags = _TAIL.unpack_from(data, end)
        if tags or len(data) - end != _TAIL.size:
            raise _Unusual
        value.topic_id = ZERO_UUID
    value.expire_timestamp = NO_TIMESTAMP
    value.__class__ = OffsetCommitValue
    return value  # type: ignore[no-any-return]
