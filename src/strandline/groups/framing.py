"""The key and the value of a record in `__consumer_offsets`: what type or version it is of, and its body.

Always true: a type that we don't know (share and streams groups, or what a newer broker wrote) is skipped, since it
says nothing about our groups; a version that we don't know of a type that we do is an error, since the group would be
other than its coordinator left it.
"""

from __future__ import annotations

import dataclasses
import struct
from functools import cache

from strandline.coordinator.record import CoordinatorKey, CoordinatorRecord
from strandline.groups import offset_codec
from strandline.groups.records import BY_TYPE, OffsetCommitKey
from strandline.wire.codec import Buffer, Codec
from strandline.wire.declared import struct_of
from strandline.wire.errors import MalformedRequest

LEGACY_OFFSET_COMMIT = 0
"""An OffsetCommit as brokers before 0.9 wrote it: the same fields. Read as one, never written."""
HEAD_SIZE = 2


class MalformedCoordinatorRecord(MalformedRequest):
    """These bytes are not a record that we know."""


def encode(record: CoordinatorRecord, version: int | None = None) -> tuple[bytes, bytes | None]:
    """The record's key and value; a tombstone has no value.
    `version` of the value, if not the one that is written today.
    """
    if version is None and (written := offset_codec.encode(record)) is not None:
        return written
    key, value = record
    codec, head = _key_codec(key.TYPE)
    key_bytes = head + codec.encode(key)
    if value is None:
        return key_bytes, None
    codec, head = _value_codec(key.TYPE, value.version_to_write if version is None else version)
    return key_bytes, head + codec.encode(value)


def decode(key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
    """The record; None if it is of a type that isn't ours."""
    if key is None:
        raise MalformedCoordinatorRecord("record without a key")
    key_data = key if type(key) is bytes else bytes(key)
    value_data = value if value is None or type(value) is bytes else bytes(value)
    if value_data is not None and (offset := offset_codec.decode(key_data, value_data)) is not None:
        return offset
    kind = _head(key_data, "key")
    key_class = OffsetCommitKey if kind == LEGACY_OFFSET_COMMIT else BY_TYPE.get(kind)
    if key_class is None:
        return None
    found: CoordinatorKey = _key_codec(key_class.TYPE)[0].decode(key_data, HEAD_SIZE)[0]
    if value_data is None:
        return CoordinatorRecord(found, None)
    version = _head(value_data, "value")
    if version not in key_class.VALUE.VERSIONS:
        raise MalformedCoordinatorRecord(f"{key_class.VALUE.__name__} with unknown version {version}")
    return CoordinatorRecord(found, _value_codec(key_class.TYPE, version)[0].decode(value_data, HEAD_SIZE)[0])


def _head(data: bytes, part: str) -> int:
    if len(data) < HEAD_SIZE:
        raise MalformedCoordinatorRecord(f"{part} of {len(data)} bytes, too short for what it is of")
    return int.from_bytes(data[:HEAD_SIZE], "big", signed=True)


@cache
def _key_codec(kind: int) -> tuple[Codec, bytes]:
    return Codec(struct_of(BY_TYPE[kind], 0, flexible=False), 0), struct.pack(">h", kind)


@cache
def _value_codec(kind: int, version: int) -> tuple[Codec, bytes]:
    value_class = BY_TYPE[kind].VALUE
    declared = struct_of(value_class, version, flexible=version >= value_class.FLEXIBLE)
    gone = {name for name, first in value_class.GONE.items() if first <= version}
    fields = tuple(field for field in declared.fields if field.name not in gone)
    return Codec(dataclasses.replace(declared, fields=fields), version), struct.pack(">h", version)
