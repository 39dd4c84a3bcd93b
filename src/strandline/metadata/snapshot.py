"""The format of a metadata snapshot: a `.checkpoint` file, which is batches between a header and a footer. One is taken in
`node/quorum/snapshotting.py`.

First a control batch: the snapshot's header, and from kraft.version 1 on the kraft.version and the voters. Then the records
that make the image again, some at a time. Last a control batch with nothing but the footer.

Always true: `read` returns a whole snapshot or raises CorruptSnapshot, whatever the bytes: a file that was cut off has no
footer. Offsets count from 0 within the file and the batches carry the epoch of the snapshot's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import framing
from strandline.metadata.image import MetadataImage
from strandline.metadata.image_records import metadata_version_of, records_of
from strandline.metadata.records import MetadataRecord, version_for
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode
from strandline.records.control import ControlRecordType, control_key, read_control_type
from strandline.records.errors import CorruptRecord
from strandline.records.record import Record
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.message import Message

if TYPE_CHECKING:
    from strandline.wire.stubs.data import VotersRecord

BATCH_RECORDS_MAX = 1024
BATCH_BYTES_MAX = 1 << 20
"""A batch is closed when it has this many records or bytes."""

_MESSAGES = {
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}


class CorruptSnapshot(KafkaError):
    """These bytes are no snapshot, or not a whole one; says where. CORRUPT_MESSAGE."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


@dataclass(frozen=True, slots=True)
class Snapshot:
    records: list[MetadataRecord]
    kraft_version: int
    voters: VotersRecord | None
    """The VotersRecord, if there is one."""
    last_contained_timestamp: int


def write(
    image: MetadataImage,
    snapshot_id: tuple[int, int],
    *,
    kraft_version: int,
    voters: VotersRecord | None,
    timestamp_ms: int,
) -> Iterator[bytes]:
    """The bytes of an image's snapshot, a batch at a time. `snapshot_id` is its end offset and the epoch of its last record."""
    return write_records(
        records_of(image),
        metadata_version_of(image),
        snapshot_id,
        kraft_version=kraft_version,
        voters=voters,
        timestamp_ms=timestamp_ms,
    )


def write_records(
    records: Iterable[MetadataRecord],
    metadata_version: int,
    snapshot_id: tuple[int, int],
    *,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
    timestamp_ms: int,
    last_contained_timestamp: int | None = None,
) -> Iterator[bytes]:
    """A snapshot of these records, which need not be an image's: a new cluster begins with some."""
    assert kraft_version or voters is None, "voters are in the log from kraft.version 1 on"
    last_contained = timestamp_ms if last_contained_timestamp is None else last_contained_timestamp
    header = messages.data("SnapshotHeaderRecord")(version=0, last_contained_log_timestamp=last_contained)
    head: list[tuple[ControlRecordType, Message]] = [(ControlRecordType.SNAPSHOT_HEADER, header)]
    if kraft_version:
        version = messages.data("KRaftVersionRecord")(version=0, k_raft_version=kraft_version)
        head.append((ControlRecordType.KRAFT_VERSION, version))
        if voters is not None:
            head.append((ControlRecordType.KRAFT_VOTERS, voters))
    foot = [(ControlRecordType.SNAPSHOT_FOOTER, messages.data("SnapshotFooterRecord")(version=0))]
    offset, epoch = 0, snapshot_id[1]
    yield bytes(_control(head, timestamp_ms).build(leader_epoch=epoch, control=True))
    offset += len(head)
    for builder in _data(records, metadata_version, timestamp_ms):
        yield bytes(builder.build(base_offset=offset, leader_epoch=epoch))
        offset += builder.records_count
    yield bytes(_control(foot, timestamp_ms).build(base_offset=offset, leader_epoch=epoch, control=True))


def _control(pairs: Iterable[tuple[ControlRecordType, Message]], timestamp_ms: int) -> BatchBuilder:
    builder = BatchBuilder()
    for kind, message in pairs:
        builder.append(control_key(kind), messages.encode_data(_MESSAGES[kind], 0, message), timestamp=timestamp_ms)
    return builder


def _data(records: Iterable[MetadataRecord], metadata_version: int, timestamp_ms: int) -> Iterator[BatchBuilder]:
    builder = BatchBuilder()
    versions: dict[type[MetadataRecord], int] = {}
    for record in records:
        cls = type(record)
        if cls not in versions:
            versions[cls] = version_for(cls, metadata_version)
        builder.append(None, framing.encode(record, versions[cls]), timestamp=timestamp_ms)
        if builder.records_count >= BATCH_RECORDS_MAX or builder.size_bytes >= BATCH_BYTES_MAX:
            yield builder
            builder = BatchBuilder()
    if builder.records_count:
        yield builder


def read(data: bytes) -> Snapshot:
    """The whole of a snapshot, or CorruptSnapshot."""
    position = next_offset = 0
    reader = _Reader()
    try:
        for position, header in layout.iterate(data):
            end = position + header.size_bytes
            if header.base_offset != next_offset:
                raise CorruptSnapshot(f"offset {header.base_offset} at position {position}, not {next_offset}")
            reader.batch(header.is_control, decode(data[position:end]))
            next_offset = header.next_offset
            if reader.ended and end != len(data):
                raise CorruptSnapshot(f"{len(data) - end} bytes after the snapshot's footer")
        return reader.finish()
    except CorruptSnapshot:
        raise
    except (CorruptRecord, MalformedRequest) as error:
        raise CorruptSnapshot(f"the batch at position {position} of the snapshot: {error}") from None


class _Reader:
    """What has been read of a snapshot, batch by batch."""

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self.ended = False
        self._control: dict[ControlRecordType, Any] = {}

    def batch(self, is_control: bool, records: Iterator[Record]) -> None:
        if is_control:
            for record in records:
                self._control_record(record)
        elif self._control:
            self.records += [framing.decode(record.value or b"")[0] for record in records]
        else:
            raise CorruptSnapshot("records before the snapshot's header")

    def _control_record(self, record: Record) -> None:
        kind = read_control_type(record.key)
        if not self._control and kind is not ControlRecordType.SNAPSHOT_HEADER:
            raise CorruptSnapshot(f"the snapshot begins with {kind.name}, not with its header")
        if kind in self._control and kind is ControlRecordType.SNAPSHOT_HEADER:
            raise CorruptSnapshot("the snapshot has a second header")
        if kind in _MESSAGES:
            self._control[kind] = messages.decode_data(_MESSAGES[kind], 0, record.value or b"")
        self.ended = kind is ControlRecordType.SNAPSHOT_FOOTER

    def finish(self) -> Snapshot:
        if not self.ended:
            raise CorruptSnapshot("the snapshot does not end with its footer: it was cut off")
        version = self._control.get(ControlRecordType.KRAFT_VERSION)
        return Snapshot(
            self.records,
            0 if version is None else version.k_raft_version,
            self._control.get(ControlRecordType.KRAFT_VOTERS),
            self._control[ControlRecordType.SNAPSHOT_HEADER].last_contained_log_timestamp,
        )
