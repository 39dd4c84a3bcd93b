"""The records that a log has one of per topic, partition or change: read and written by hand, since they are nearly all of it.

Always true: what is read and written here is what the general codec reads and writes (`framing.py`). Whatever is out of the
ordinary (a tagged field that is new, an array of more than 126 elements, bytes that are no record) is left to it: None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sized

from strandline.ids import Uuid
from strandline.metadata.records import (
    NO_LEADER_CHANGE,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from strandline.metadata.sharing import Shared, unfrozen
from strandline.wire.primitives import array_packer, array_unpacker

FRAME_VERSION = 1
BODY_AT = 3
"""Frame version, key and version take a byte each."""
ONE_BYTE_MAX = 0x7F
"""The largest varint of one byte."""

_HEAD = struct.Struct(">i16sB")
_EPOCHS = struct.Struct(">iii")
_EPOCHS_AND_SIZE = struct.Struct(">iiiB")
_PARTITION_HEAD = struct.Struct(">BBBi16s")
_INT32 = struct.Struct(">i")
_unpack_head, _unpack_epochs = _HEAD.unpack_from, _EPOCHS_AND_SIZE.unpack_from
_int32s, _packed_int32s = array_unpacker("i"), array_packer("i")
_new, _new_uuid = object.__new__, bytes.__new__


def _ids(raw: bytes) -> tuple[Uuid, ...]:
    return tuple(map(Uuid, (raw[at : at + 16] for at in range(0, len(raw), 16))))


def _ints(raw: bytes) -> tuple[int, ...]:
    if len(raw) % 4:
        raise IndexError
    return _int32s(len(raw) // 4)(raw, 0)


def _array(elements: Sized, body: bytes) -> bytes:
    if len(elements) >= ONE_BYTE_MAX:
        raise ValueError(f"{len(elements)} elements")
    return (len(elements) + 1).to_bytes(1, "big") + body


_INTS: Shared[bytes, tuple[int, ...]] = Shared(_ints)
_IDS: Shared[bytes, tuple[Uuid, ...]] = Shared(_ids)
_INT_ARRAYS: Shared[tuple[int, ...], bytes] = Shared(
    lambda values: _array(values, _packed_int32s(len(values))(*values))
)
_ID_ARRAYS: Shared[tuple[Uuid, ...], bytes] = Shared(lambda values: _array(values, b"".join(values)))

_Topic = unfrozen(TopicRecord)
_Partition = unfrozen(PartitionRecord)
_PartitionChange = unfrozen(PartitionChangeRecord)


def decode_topic(data: bytes, _version: int) -> TopicRecord | None:
    size = data[BODY_AT] - 1
    name_end = BODY_AT + 1 + size
    if not 0 <= size < ONE_BYTE_MAX or len(data) != name_end + 17 or data[name_end + 16]:
        return None
    topic = _new(_Topic)
    topic.name = data[BODY_AT + 1 : name_end].decode()
    topic.topic_id = _new_uuid(Uuid, data[name_end : name_end + 16])
    topic.__class__ = TopicRecord
    return topic  # type: ignore[no-any-return]


def decode_partition(data: bytes, version: int) -> PartitionRecord | None:
    # Each size is read as one byte; that it was one, and no null, is checked when all have been read.
    partition_id, topic_id, replicas_size = _unpack_head(data, BODY_AT)
    ints = _INTS
    isr_at = BODY_AT + _HEAD.size + 4 * replicas_size - 3
    replicas = ints[data[BODY_AT + _HEAD.size : isr_at - 1]]
    isr_size = data[isr_at - 1]
    removing_at = isr_at + 4 * isr_size - 3
    isr = ints[data[isr_at : removing_at - 1]]
    removing_size = data[removing_at - 1]
    adding_at = removing_at + 4 * removing_size - 3
    removing = ints[data[removing_at : adding_at - 1]]
    adding_size = data[adding_at - 1]
    leader_at = adding_at + 4 * adding_size - 4
    adding = ints[data[adding_at:leader_at]]
    leader, leader_epoch, partition_epoch, tags = _unpack_epochs(data, leader_at)
    position = leader_at + _EPOCHS_AND_SIZE.size
    directories: tuple[Uuid, ...] = ()
    directories_size = 1
    if version:
        directories_size = tags
        end = position + 16 * directories_size - 16
        directories = _IDS[data[position:end]]
        tags = data[end]
        position = end + 1
    if tags or len(data) != position:
        return None  # it has tagged fields, or does not end where it should
    if (replicas_size | isr_size | removing_size | adding_size | directories_size) > ONE_BYTE_MAX:
        return None
    if not (replicas_size and isr_size and removing_size and adding_size and directories_size):
        return None
    partition = _new(_Partition)
    partition.partition_id = partition_id
    partition.topic_id = _new_uuid(Uuid, topic_id)
    partition.replicas = replicas
    partition.isr = isr
    partition.removing_replicas = removing
    partition.adding_replicas = adding
    partition.leader = leader
    partition.leader_recovery_state = 0
    partition.leader_epoch = leader_epoch
    partition.partition_epoch = partition_epoch
    partition.directories = directories
    partition.eligible_leader_replicas = partition.last_known_elr = None
    partition.__class__ = PartitionRecord
    return partition  # type: ignore[no-any-return]


_ISR, _LEADER, _RECOVERY, _DIRECTORIES = 0, 1, 5, 8
_ARRAY_OF_TAG = {
    0: "isr",
    2: "replicas",
    3: "removing_replicas",
    4: "adding_replicas",
    6: "eligible_leader_replicas",
    7: "last_known_elr",
}
_TAG_MAX = (5, 8, 8)
"""By version. Version 1 has no tags 6 and 7."""


def decode_partition_change(data: bytes, version: int) -> PartitionChangeRecord | None:
    partition_id, topic_id, tags = _unpack_head(data, BODY_AT)
    position = BODY_AT + _HEAD.size
    change = _new(_PartitionChange)
    change.partition_id = partition_id
    change.topic_id = _new_uuid(Uuid, topic_id)
    change.isr = change.replicas = change.removing_replicas = change.adding_replicas = change.directories = None
    change.eligible_leader_replicas = change.last_known_elr = None
    change.leader = NO_LEADER_CHANGE
    change.leader_recovery_state = -1
    last_tag = -1
    for _ in range(tags):
        tag, size = data[position], data[position + 1]
        position += 2
        end = position + size
        if not last_tag < tag <= _TAG_MAX[version] or size > ONE_BYTE_MAX or (version == 1 and tag in (6, 7)):
            return None
        last_tag = tag
        if tag == _LEADER:
            if size != 4:
                return None
            (change.leader,) = _INT32.unpack_from(data, position)
        elif tag == _RECOVERY:
            if size != 1:
                return None
            value = data[position]
            change.leader_recovery_state = value if value <= ONE_BYTE_MAX else value - 256
        else:
            count = data[position]
            if size != 1 + (count - 1) * (16 if tag == _DIRECTORIES else 4):
                return None  # null among others
            raw = data[position + 1 : end]
            if tag == _ISR:
                change.isr = _INTS[raw]
            elif tag == _DIRECTORIES:
                change.directories = _IDS[raw]
            else:
                setattr(change, _ARRAY_OF_TAG[tag], _INTS[raw])
        position = end
    if len(data) != position:
        return None
    change.__class__ = PartitionChangeRecord
    return change  # type: ignore[no-any-return]


def encode_partition(record: PartitionRecord, version: int) -> bytes | None:
    if record.leader_recovery_state or record.eligible_leader_replicas is not None or record.last_known_elr is not None:
        return None
    ints = _INT_ARRAYS
    return b"".join(
        (
            _PARTITION_HEAD.pack(FRAME_VERSION, PartitionRecord.KEY, version, record.partition_id, record.topic_id),
            ints[record.replicas],
            ints[record.isr],
            ints[record.removing_replicas],
            ints[record.adding_replicas],
            _EPOCHS.pack(record.leader, record.leader_epoch, record.partition_epoch),
            _ID_ARRAYS[record.directories] if version else b"",
            b"\0",
        )
    )


_NO_READER = (None, 0)
_READERS: dict[bytes, tuple[Callable[[bytes, int], MetadataRecord | None], int]] = {
    bytes((FRAME_VERSION, cls.KEY, version)): (reader, version)
    for cls, reader in (
        (TopicRecord, decode_topic),
        (PartitionRecord, decode_partition),
        (PartitionChangeRecord, decode_partition_change),
    )
    for version in cls.VERSIONS
}


def decode(data: bytes) -> tuple[MetadataRecord, int] | None:
    """The record of a whole value, frame included, and its version; None leaves it to the general codec."""
    reader, version = _READERS.get(data[:BODY_AT], _NO_READER)
    if reader is None:
        return None
    try:
        record = reader(data, version)
    except (IndexError, ValueError, struct.error):
        return None
    return None if record is None else (record, version)


def encode(record: MetadataRecord, version: int) -> bytes | None:
    """The whole value of a record, frame included; None leaves it to the general codec."""
    if type(record) is not PartitionRecord:
        return None
    try:
        return encode_partition(record, version)
    except (TypeError, ValueError, struct.error):
        return None
