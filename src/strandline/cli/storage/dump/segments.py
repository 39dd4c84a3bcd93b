"""The batches and records of a `.log` file or a metadata snapshot, line by line.

Always true: bytes at the end of a file that are not a complete batch are counted and reported, never read as one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from strandline.cli.errors import CommandRefused
from strandline.cli.storage.dump import kafka_json
from strandline.records import header as layout
from strandline.records.batch import open_records
from strandline.records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from strandline.records.control import ControlRecordType, read_control_type, read_end_txn_marker
from strandline.records.errors import CorruptRecord
from strandline.records.header import BatchHeader, check_magic, crc_valid
from strandline.records.record import Record
from strandline.wire.errors import MalformedRequest

INDENT = "|"
WHOLE_FILE = 0x7FFF_FFFF
_CONTROL_MESSAGES = {
    ControlRecordType.LEADER_CHANGE: (" LeaderChange: ", "LeaderChangeMessage"),
    ControlRecordType.SNAPSHOT_HEADER: (" SnapshotHeader ", "SnapshotHeaderRecord"),
    ControlRecordType.SNAPSHOT_FOOTER: (" SnapshotFooter ", "SnapshotFooterRecord"),
    ControlRecordType.KRAFT_VERSION: (" KRaftVersion ", "KRaftVersionRecord"),
    ControlRecordType.KRAFT_VOTERS: (" KRaftVoters ", "VotersRecord"),
}

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()

Show = Callable[[Record], tuple[str | None, str | None]]
"""The text of a record's key and value; None is not printed."""


class DumpOptions(NamedTuple):
    """What is printed of a file."""

    deep: bool = False
    contents: bool = False
    metadata: bool = True
    """Whether a record's offset, timestamp and sizes are shown."""
    max_bytes: int = WHOLE_FILE
    show: Show | None = None


Gaps = dict[str, dict[int, int]]


def as_text(record: Record) -> tuple[str | None, str | None]:
    """Keys and values as UTF-8."""
    return _text(record.key), _text(record.value)


def _text(data: bytes | None) -> str | None:
    """UTF-8, with invalid bytes replaced as in Java: an encoded surrogate is replaced once, not three times."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def as_metadata(record: Record) -> tuple[str | None, str | None]:
    """Values as records of `__cluster_metadata`, which have no keys."""
    try:
        return None, kafka_json.of_metadata_record(record.value)
    except MalformedRequest as error:
        return None, f"Error at {record.offset}, skipping. {error}"


def dump(path: str, options: DumpOptions, gaps: Gaps) -> Iterator[str]:
    """The lines for one file. Offsets that do not follow each other are added to `gaps`."""
    yield _opening(path)
    with open(path, "rb") as file:
        end = min(os.fstat(file.fileno()).st_size, options.max_bytes)
        position, last_offset = 0, -1
        for batch_position, header, batch in batches(file, path, 0, end):
            yield batch_line(header, batch_position, crc_valid(batch))
            if options.deep:
                for record in _records(path, header, batch):
                    if record.offset != last_offset + 1:
                        gaps.setdefault(os.path.abspath(path), {})[last_offset] = record.offset
                    last_offset = record.offset
                    yield record_line(header, record, options)
            position = batch_position + header.size_bytes
        if end > position and options.max_bytes == WHOLE_FILE:
            yield f"Found {end - position} invalid bytes at the end of {os.path.basename(path)}"


def _opening(path: str) -> str:
    name = os.path.basename(path)
    stem = name.partition(".")[0]
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    try:
        if name.endswith(".checkpoint"):
            offset, _, epoch = stem.partition("-")
            return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"
        return f"Log starting offset: {int(stem)}"
    except ValueError:
        raise CommandRefused(
            f"{path}: the name does not begin with an offset, so it is not a segment or snapshot"
        ) from None


def batches(file: BinaryIO, path: str, position: int, end: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Position, header and bytes of each complete batch from a position on."""
    file.seek(position)
    while end - position > layout.MAGIC_AT:
        head = file.read(min(layout.RECORDS_AT, end - position))
        length = int.from_bytes(head[layout.LENGTH_AT : layout.LENGTH_AT + 4], "big", signed=True)
        if length < layout.RECORDS_AT - layout.LOG_OVERHEAD:
            raise CommandRefused(
                f"{path}: at position {position} a batch claims {length} bytes, less than a header; damaged from there"
            )
        try:
            check_magic(head[layout.MAGIC_AT])
        except CorruptRecord as error:
            raise CommandRefused(f"{path}: at position {position}: {error.message}") from None
        size = layout.LOG_OVERHEAD + length
        if position > end - size:
            return
        batch = head + file.read(size - len(head))
        yield position, BatchHeader._make(layout.HEADER.unpack_from(batch)), batch
        position += size


def _records(path: str, header: BatchHeader, batch: bytes) -> Iterator[Record]:
    try:
        yield from open_records(header, batch, DECOMPRESSED_BYTES_MAX)
    except CorruptRecord as error:
        raise CommandRefused(
            f"{path}: the batch at offset {header.base_offset} cannot be read: {error.message}"
        ) from None


def batch_line(header: BatchHeader, position: int, valid: bool) -> str:
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.partition_leader_epoch}"
        f" isTransactional: {_boolean(header.is_transactional)} isControl: {_boolean(header.is_control)}"
        f" deleteHorizonMs: {optional_long(horizon)}"
        f" position: {position} {_timestamp_type(header)}: {header.max_timestamp} size: {header.size_bytes}"
        f" magic: {header.magic} compresscodec: {_codec(header)} crc: {header.crc} isvalid: {_boolean(valid)}"
    )


def record_line(header: BatchHeader, record: Record, options: DumpOptions) -> str:
    parts = []
    if options.metadata:
        parts.append(_record_metadata(header, record))
    if options.contents and not header.is_control:
        prefix = " " if options.metadata else f"{INDENT} "
        key, value = (options.show or as_text)(record)
        if key is not None:
            parts.append(f"{prefix}key: {key}")
            prefix = " "
        if value is not None:
            parts.append(f"{prefix}payload: {value}")
    return "".join(parts)


def _record_metadata(header: BatchHeader, record: Record) -> str:
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = (sequence + record.offset - header.base_offset) & layout.SEQUENCE_MAX
    keys = ",".join(key for key, _ in record.headers)
    line = (
        f"{INDENT} offset: {record.offset} {_timestamp_type(header)}: {record.timestamp}"
        f" keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{keys}]"
    )
    return line + _control(record) if header.is_control else line


def _control(record: Record) -> str:
    kind = read_control_type(record.key)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {read_end_txn_marker(record.value)}"
    if kind in _CONTROL_MESSAGES and record.value is not None:
        from strandline.wire import messages

        title, name = _CONTROL_MESSAGES[kind]
        # Each of these messages begins with its version.
        version = int.from_bytes(record.value[:2], "big", signed=True)
        family = messages.data_family(name)
        version = max(family.versions[0], min(version, family.versions[-1]))
        message = messages.decode_data(name, version, record.value)
        return title + kafka_json.of_message(family.struct(version), message)
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return f" controlType: {kind.name}({number})"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _codec(header: BatchHeader) -> str:
    try:
        return CompressionType.of(header.codec).name.lower()
    except CorruptRecord:
        return f"unknown({header.codec})"
