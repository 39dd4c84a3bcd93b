"""The metadata log, as Raft sees it: the log of `__cluster_metadata` with the snapshot that it begins with.

Always true: a log that begins above 0 begins at the end of a snapshot; what is on the device is known (`flushed_offset`), and
batches are appended in order, without a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints, names
from strandline.log.epochs import UNDEFINED_EPOCH
from strandline.log.errors import CorruptBatch, NotCached
from strandline.log.log import Log, batches_from
from strandline.log.recovery import load
from strandline.node.log_dirs import StorageError
from strandline.node.quorum.snapshots import Snapshots
from strandline.ports import Clock, Disk
from strandline.raft.messages import OffsetAndEpoch
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import iterate
from strandline.records.record import Record

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def metadata_dir(log_dir: str) -> str:
    return f"{log_dir}/{names.partition_dir(names.CLUSTER_METADATA_TOPIC, 0)}"


class MetadataLog:
    """A LogView; `log` is the log itself."""

    def __init__(self, disk: Disk, directory: str, clock: Clock, snapshots: Snapshots) -> None:
        self._disk = disk
        self.directory = directory
        self._clock = clock
        self._snapshots = snapshots
        self.log: Log
        self.floor = 0
        """Everything below is committed, and never cut (D10)."""
        self.truncated_bytes = 0
        """Cut from the log when it was loaded."""

    def make_directory(self) -> None:
        """Make the directory if it is not there, and sync its name: all that is synced in it is lost without. Blocks."""
        self._disk.mkdir(self.directory)
        self._disk.sync_dir(self.directory.rpartition("/")[0])

    def load(
        self, config: TopicConfig, latest: OffsetAndEpoch | None, *, clean: bool, is_relied_on: bool = True
    ) -> None:
        """Load what is there. `latest` is the snapshot that is used: what the log lacks before it is not missed. Blocks.

        `is_relied_on`: this is a controller, whose log may be part of a majority. It must not forget what was on the device once:
        StorageError if some of that is damaged. An observer's log is cut there, and fetched again.
        """
        present = names.offsets_in(self._disk.listdir(self.directory), names.LOG_SUFFIX)
        start_offset = self._start_offset(present[0] if present else 0, latest)
        recovered = load(
            self._disk,
            self.directory,
            config,
            clean=clean,
            log_start_offset=start_offset,
            now_ms=self._clock.wall_ms(),
        )
        self.log = recovered.log
        self.truncated_bytes = recovered.truncated_bytes
        damaged = self._first_damaged(recovered.damaged) if clean else None
        if damaged is not None:
            self._cut_damage(damaged, is_relied_on)
        if self._snapshots.at(recovered.epochs_known_from) is not None:
            # There the log last began, at the end of a snapshot; files may still reach further back.
            self.log.advance_start(recovered.epochs_known_from)
        if latest is not None and (self.end_offset < latest.offset or self.last_epoch < latest.epoch):
            # A crash between a snapshot that was fetched and the log that was to begin there.
            self.log.truncate_fully_and_start_at(latest.offset)
        metadata = f"{self.directory}/{checkpoints.PARTITION_METADATA}"
        if not self._disk.exists(metadata):
            self._disk.write_file(metadata, checkpoints.partition_metadata(METADATA_TOPIC_ID))
        self._disk.sync_dir(self.directory)

    def _first_damaged(self, found: Sequence[CorruptBatch]) -> CorruptBatch | None:
        """What the recovery found, or a batch that does not go on where the one before it ended: nothing is ever compacted here."""
        expected_offset = self.log.segments[0].base_offset
        try:
            for segment, position, header in batches_from(self.log, expected_offset):
                offset, epoch = header.base_offset, header.partition_leader_epoch
                known = self.log.epochs.epoch_at(offset)
                if offset != expected_offset or known not in (UNDEFINED_EPOCH, epoch):
                    reason = (
                        f"a batch at offset {offset} of epoch {epoch} comes where {expected_offset} of {known} should"
                    )
                    place = segment.base_offset, position, segment.size, expected_offset, self.end_offset
                    return CorruptBatch(self.directory, *place, reason)
                expected_offset = header.next_offset
        except CorruptBatch as damaged:
            return damaged
        return found[0] if found else None

    def _cut_damage(self, damaged: CorruptBatch, is_relied_on: bool) -> None:
        if is_relied_on:
            raise StorageError(
                f"{self.directory} is damaged from offset {damaged.first_offset} on ({damaged.reason}), and the quorum may rely on "
                "what was there: take this node out of the quorum, empty its metadata log dir and let it in again"
            )
        size = self.log.size
        self.log.truncate_to(damaged.first_offset)
        self.truncated_bytes += size - self.log.size

    def _start_offset(self, first: int, latest: OffsetAndEpoch | None) -> int:
        """The log begins at 0, or at the end of the first snapshot in it."""
        if not first:
            return 0
        ends = [snapshot_id.offset for snapshot_id in self._snapshots.ids if snapshot_id.offset >= first]
        if latest is None or not ends:
            raise StorageError(
                f"{self.directory} begins at offset {first} and has no whole snapshot of what was before: take this node out "
                "of the quorum, empty its metadata log dir and let it in again"
            )
        return min(ends)

    async def warm(self, cold: NotCached) -> None:
        """Read what is cold beside the event loop, if it is still part of the log: a snapshot may have taken its place since."""
        if not self.log.has_segment(cold.file):
            return
        try:
            with self.log.held():
                await self._disk.offload(cold.warm, self.directory)
        except OSError:
            if self.log.has_segment(cold.file):  # else it was removed meanwhile
                raise

    # What Raft sees

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def flushed_offset(self) -> int:
        return self.log.recovery_point

    @property
    def last_epoch(self) -> int:
        latest = self.log.epochs.latest
        return latest if latest >= 0 else self._first_epoch

    @property
    def _first_epoch(self) -> int:
        """Of the snapshot that the log begins with; 0 if there is none."""
        snapshot_id = self._snapshots.at(self.start_offset)
        return 0 if snapshot_id is None else snapshot_id.epoch

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        entries = self.log.epochs.entries
        following = bisect_right(entries, epoch, key=lambda entry: entry[0])
        end_offset = entries[following][1] if following < len(entries) else self.end_offset
        if following:
            return OffsetAndEpoch(end_offset, entries[following - 1][0])
        snapshot_id = self._snapshots.at(self.start_offset)
        if snapshot_id is not None and snapshot_id.epoch <= epoch:
            return OffsetAndEpoch(snapshot_id.offset, snapshot_id.epoch)
        return OffsetAndEpoch(-1, -1)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self._snapshots.latest

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        return self._snapshots.size(snapshot_id)

    # What Raft wants done

    def append(self, pairs: Iterable[tuple[bytes | None, bytes]], epoch: int, *, control: bool = False) -> int:
        """One batch of our own; its timestamp."""
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder()
        for key, value in pairs:
            builder.append(key, value, timestamp=now_ms)
        self.log.append_own(builder.build(control=control), epoch, now_ms)
        return now_ms

    def read(self, offset: int, max_bytes: int) -> bytes:
        """What follows, committed or not; the first batch comes whole. NotCached if that would wait for the device."""
        return bytes(self.log.read(offset, max_bytes, self.end_offset, min_one=True))

    def truncate(self, end_offset: int) -> None:
        assert end_offset >= self.floor, f"cut at {end_offset}, and everything below {self.floor} is committed"
        self.log.truncate_to(end_offset)

    def append_fetched(self, records: bytes) -> None:
        _, first = next(iterate(records))
        assert first.base_offset == self.end_offset, f"offset {first.base_offset} after log end {self.end_offset}"
        self.log.append_as_follower(records, self._clock.wall_ms())

    def control_records(self) -> Iterator[tuple[int, Record]]:
        """All of them, with their offsets. Blocks."""
        for segment, position, header in batches_from(self.log, self.start_offset):
            if header.is_control:
                batch = segment.file.read_blocking(position, header.size_bytes)
                for i, record in enumerate(decode(batch)):
                    yield header.base_offset + i, record
