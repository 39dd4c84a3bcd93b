"""Batches of the metadata log, opened.

Always true: what is read here carried its CRC. It is plain work on bytes, so a long stretch of log can be read beside the event
loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from strandline.metadata import framing
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from strandline.raft.control_records import read_kraft_version, read_voters
from strandline.raft.voters import VoterSet
from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, read_control_type
from strandline.records.header import iterate
from strandline.records.record import Record


class MetadataBatch(NamedTuple):
    end_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: list[MetadataRecord]
    voters: VoterSet | None = None
    kraft_version: int | None = None


def read(data: bytes) -> list[MetadataBatch]:
    """The whole batches in these bytes; one that was cut at the end is left for the next time."""
    view = memoryview(data)
    batches = []
    for position, header in iterate(data):
        records = decode(bytes(view[position : position + header.size_bytes]))
        end = header.next_offset, header.partition_leader_epoch, header.max_timestamp, header.size_bytes
        if header.is_control:
            batches.append(MetadataBatch(*end, [], *control(records)))
        else:
            batches.append(MetadataBatch(*end, [framing.decode(record.value or b"")[0] for record in records]))
    return batches


def control(records: Iterable[Record]) -> tuple[VoterSet | None, int | None]:
    """The voters and the kraft.version that a control batch brings, if it does."""
    voters, kraft_version = None, None
    for record in records:
        kind = read_control_type(record.key)
        if kind is ControlRecordType.KRAFT_VOTERS:
            voters = read_voters(record.value or b"")
        elif kind is ControlRecordType.KRAFT_VERSION:
            kraft_version = read_kraft_version(record.value or b"")
    return voters, kraft_version


def whole_transactions(records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """Without the marks of metadata transactions, and without the records of those that were aborted or never ended."""
    kept: list[MetadataRecord] = []
    open_since: int | None = None
    for record in records:
        match record:
            case BeginTransactionRecord():
                open_since = len(kept)
            case EndTransactionRecord():
                open_since = None
            case AbortTransactionRecord():
                if open_since is not None:
                    del kept[open_since:]
                open_since = None
            case _:
                kept.append(record)
    if open_since is not None:
        del kept[open_since:]
    return kept


def is_within_transaction(records: Iterable[MetadataRecord], before: bool) -> bool:
    """Whether a metadata transaction is open after these records, if one was or was not `before` them."""
    for record in records:
        if isinstance(record, BeginTransactionRecord):
            before = True
        elif isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
            before = False
    return before
