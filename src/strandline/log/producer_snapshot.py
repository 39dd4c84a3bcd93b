"""The `.snapshot` file: a partition's producers at one offset, so that a restart need not read the whole log.

Always true: a file that does not carry its own checksum is not used; the state is then rebuilt from the log (TXN-P30).
"""

from __future__ import annotations

import struct

import crc32c

from strandline.log import names
from strandline.log.errors import CorruptLog
from strandline.log.producers import BatchMetadata, Producers, ProducerState
from strandline.ports import Disk

VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRIES_AT = 6
_ENTRY = struct.Struct(">qhiqiqiq")


def encode(producers: Producers) -> bytes:
    entries = b"".join(
        _ENTRY.pack(
            producer.producer_id,
            producer.epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.batches[-1].offset_delta if producer.batches else 0,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.current_txn_first_offset,
        )
        for producer in producers.by_id.values()
    )
    body = struct.pack(">i", len(producers.by_id)) + entries
    return struct.pack(">hI", VERSION, crc32c.crc32c(body)) + body


def decode(data: bytes, path: str) -> list[ProducerState]:
    if len(data) < _HEAD.size:
        raise CorruptLog(f"{path} is too short for a producer snapshot")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptLog(f"{path} has version {version}, we read version {VERSION}")
    if crc32c.crc32c(data[_ENTRIES_AT:]) != checksum:
        raise CorruptLog(f"{path} fails its checksum")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptLog(f"{path} promises {count} producers and has {len(data)} bytes")
    found = []
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, txn_first = fields
        producer = ProducerState(producer_id)
        producer.epoch = epoch
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.current_txn_first_offset = txn_first
        if last_offset >= 0:
            producer.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        found.append(producer)
    return found


def write(disk: Disk, directory: str, offset: int, data: bytes) -> None:
    disk.write_file(f"{directory}/{names.of_offset(offset, names.PRODUCER_SNAPSHOT_SUFFIX)}", data)


def offsets_in(disk: Disk, directory: str) -> list[int]:
    """The offsets of the snapshots that a directory holds, rising."""
    return names.offsets_in(disk.listdir(directory), names.PRODUCER_SNAPSHOT_SUFFIX)


def load_latest(disk: Disk, directory: str, at_least: int, at_most: int, into: Producers) -> int | None:
    """Fill `into` from the newest sound snapshot between two offsets; its offset, or None. Unsound ones are removed."""
    for offset in reversed(offsets_in(disk, directory)):
        if not at_least <= offset <= at_most:
            continue
        path = f"{directory}/{names.of_offset(offset, names.PRODUCER_SNAPSHOT_SUFFIX)}"
        try:
            producers = decode(disk.read_file(path), path)
        except CorruptLog:
            disk.remove(path)
            continue
        into.clear(offset)
        into.adopt(producers)
        return offset
    return None
