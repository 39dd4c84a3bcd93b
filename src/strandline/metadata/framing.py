"""The value of a record in `__cluster_metadata`: frame version, key and version of what follows, and its body.

Always true: every byte of a value is accounted for. A record type or version that is not in `records.py` is an error, since
a node that skipped it would go on with metadata other than its peers'.
"""

from __future__ import annotations

from functools import cache

from strandline.metadata import partition_codec
from strandline.metadata.partition_codec import FRAME_VERSION
from strandline.metadata.records import BY_KEY, MetadataRecord
from strandline.wire.codec import Buffer, Codec
from strandline.wire.declared import struct_of
from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import encode_unsigned_varint, read_unsigned_varint


class MalformedMetadataRecord(MalformedRequest):
    """This value is not a metadata record that we know."""


def encode(record: MetadataRecord, version: int) -> bytes:
    written = partition_codec.encode(record, version)
    if written is not None:
        return written
    codec, frame = _codec(record.KEY, version)
    return frame + codec.encode(record)


def decode(value: Buffer) -> tuple[MetadataRecord, int]:
    """The record, and the version in which it was written."""
    data = value if type(value) is bytes else bytes(value)
    found = partition_codec.decode(data)
    if found is not None:
        return found
    try:
        frame_version, position = read_unsigned_varint(data, 0)
        if frame_version != FRAME_VERSION:
            raise MalformedMetadataRecord(f"metadata record with frame version {frame_version}, not {FRAME_VERSION}")
        key, position = read_unsigned_varint(data, position)
        version, position = read_unsigned_varint(data, position)
    except IndexError:
        raise MalformedMetadataRecord("metadata record: the bytes end within its frame") from None
    record_class = BY_KEY.get(key)
    if record_class is None:
        raise MalformedMetadataRecord(f"metadata record with unknown key {key}")
    if version not in record_class.VERSIONS:
        raise MalformedMetadataRecord(f"{record_class.__name__} with unknown version {version}")
    record, end = _codec(key, version)[0].decode(data, position)
    if end != len(data):
        raise MalformedMetadataRecord(
            f"{record_class.__name__} version {version}: {len(data) - end} bytes after its end"
        )
    return record, version


@cache
def _codec(key: int, version: int) -> tuple[Codec, bytes]:
    record_class = BY_KEY[key]
    assert version in record_class.VERSIONS, f"{record_class.__name__} has no version {version}"
    frame = (
        encode_unsigned_varint(FRAME_VERSION)
        + encode_unsigned_varint(record_class.KEY)
        + encode_unsigned_varint(version)
    )
    return Codec(struct_of(record_class, version, flexible=True), version), frame
