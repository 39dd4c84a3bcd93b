"""The files beside a segment's log: offset index, time index, transaction index, producer snapshot.

Always true: an index is checked against its log file while it is printed; mismatches are collected and printed at the end.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from strandline.cli.errors import CommandRefused
from strandline.cli.storage.dump.segments import batches, optional_long
from strandline.log import names, producer_snapshot
from strandline.log.errors import CorruptLog
from strandline.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from strandline.log.txn_index import ENTRY as ABORTED_TXN
from strandline.records.batch import open_records
from strandline.records.compression import DECOMPRESSED_BYTES_MAX

Pairs = dict[str, list[tuple[int, int]]]


@dataclass
class IndexMismatches:
    """Mismatches between indexes and their logs, by file."""

    index: dict[str, dict[int, int]] = field(default_factory=dict)
    timestamps: Pairs = field(default_factory=dict)
    order: Pairs = field(default_factory=dict)
    not_found: Pairs = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        for path, by_offset in self.index.items():
            yield f"Mismatches in :{path}"
            for offset, found in sorted(by_offset.items(), reverse=True):
                yield f"  Index offset: {offset}, log offset: {found}"
        for path, pairs in self.timestamps.items():
            yield f"Found timestamp mismatch in :{path}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in pairs)
        for path, pairs in self.order.items():
            yield f"Found out of order timestamp in :{path}"
            yield from (f"  Index timestamp: {index}, Previously indexed timestamp: {last}" for index, last in pairs)
        for path, pairs in self.not_found.items():
            yield f"The following indexed offsets are not found in :{path}"
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in pairs)


def _base_offset(path: str) -> int:
    try:
        return names.offset_of(os.path.basename(path))
    except ValueError as error:
        raise CommandRefused(f"{path}: {error}") from None


def _beside(path: str, suffix: str) -> str:
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(directory, name.partition(".")[0] + suffix)


def _entries(path: str, entry: struct.Struct) -> list[tuple[int, int]]:
    """The complete entries of an index. Kafka preallocates the file: the index of an active segment ends in zeros."""
    with open(path, "rb") as file:
        data = file.read()
    return list(entry.iter_unpack(data[: len(data) - len(data) % entry.size]))


def dump_index(path: str, sanity_only: bool, verify_only: bool, mismatches: IndexMismatches) -> Iterator[str]:
    base = _base_offset(path)
    entries = _entries(path, OFFSET_ENTRY)
    if not entries:
        yield f"{path} is empty."
        return
    if sanity_only:
        _check(path, OFFSET_ENTRY, entries[-1][0] > 0 or len(entries) == 1)
        yield f"{path} passed sanity check."
        return
    log_path = _beside(path, names.LOG_SUFFIX)
    with open(log_path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for number, (relative, position) in enumerate(entries):
            if relative == 0 and number > 0:
                return
            offset = base + relative
            found = next((header.last_offset for _, header, _ in batches(file, log_path, position, size)), None)
            if found is None:
                raise CommandRefused(
                    f"{path}: offset {offset} points to position {position}, where {log_path} has no batch"
                )
            if found != offset:
                mismatches.index.setdefault(os.path.abspath(path), {})[offset] = found
            if not verify_only:
                yield f"offset: {offset} position: {position}"


def dump_time_index(path: str, sanity_only: bool, verify_only: bool, mismatches: IndexMismatches) -> Iterator[str]:
    base = _base_offset(path)
    entries = _entries(path, TIME_ENTRY)
    if sanity_only:
        ordered = not entries or (entries[-1][1] >= 0 and entries[-1][0] >= entries[0][0])
        _check(path, TIME_ENTRY, ordered)
        yield f"{path} passed sanity check."
        return
    log_path, name = _beside(path, names.LOG_SUFFIX), os.path.abspath(path)
    offsets = [
        entry for i, entry in enumerate(_entries(_beside(path, names.INDEX_SUFFIX), OFFSET_ENTRY)) if i == 0 or entry[0]
    ]
    last_timestamp = -1
    with open(log_path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for number, (timestamp, relative) in enumerate(entries):
            if relative == 0 and number > 0:
                return
            offset = base + relative
            position = max((at for known, at in offsets if known <= relative), default=0)
            fitting = ((h, b) for _, h, b in batches(file, log_path, position, size) if h.last_offset >= offset)
            header, batch = next(fitting, (None, b""))
            if header is None or header.last_offset != offset:
                found = -1 if header is None else header.last_offset
                mismatches.not_found.setdefault(name, []).append((offset, found))
            else:
                records = open_records(header, batch, DECOMPRESSED_BYTES_MAX)
                newest = max((record.timestamp for record in records), default=-1)
                if newest != timestamp:
                    mismatches.timestamps.setdefault(name, []).append((timestamp, newest))
                if last_timestamp >= timestamp:
                    mismatches.order.setdefault(name, []).append((timestamp, last_timestamp))
            if not verify_only:
                yield f"timestamp: {timestamp} offset: {offset}"
            last_timestamp = timestamp


def _check(path: str, entry: struct.Struct, sound: bool) -> None:
    if os.path.getsize(path) % entry.size or not sound:
        raise CommandRefused(f"{path} is damaged; a broker rebuilds it from its log at the next start")


def dump_txn_index(path: str) -> Iterator[str]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % ABORTED_TXN.size:
        raise CommandRefused(
            f"{path} has {len(data)} bytes, which is not a multiple of {ABORTED_TXN.size}; it is damaged"
        )
    for version, producer_id, first_offset, last_offset, last_stable_offset in ABORTED_TXN.iter_unpack(data):
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset}"
            f" lastStableOffset: {last_stable_offset}"
        )


def dump_producer_snapshot(path: str) -> Iterator[str]:
    with open(path, "rb") as file:
        data = file.read()
    try:
        producers = producer_snapshot.decode(data, path)
    except CorruptLog as error:
        raise CommandRefused(str(error)) from None
    for producer in producers:
        first = producer.current_txn_first_offset
        line = (
            f"producerId: {producer.producer_id} producerEpoch: {producer.epoch}"
            f" coordinatorEpoch: {producer.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(first if first >= 0 else None)}"
            f" lastTimestamp: {producer.last_timestamp}"
        )
        for batch in list(producer.batches)[:1]:
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        yield line
