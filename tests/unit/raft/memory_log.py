"""A metadata log in memory, with a device under it that keeps only what was flushed.

Always true: a crash leaves what the last finished flush saw, plus perhaps some of what came after; a truncation that was not
flushed may be undone by it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from strandline.raft import control_records
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.voters import VoterSet
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


class Snapshot(NamedTuple):
    data: bytes
    voters: VoterSet | None
    kraft_version: int


class MemoryLog:
    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.start = OffsetAndEpoch(0, 0)
        """The snapshot that the log begins with."""
        self.snapshots: dict[OffsetAndEpoch, Snapshot] = {}
        self.flushed_offset = 0
        self.truncations = 0
        self._device: list[Batch] = []

    # What Raft sees

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start.offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.start.epoch

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        found = OffsetAndEpoch(-1, -1)
        if self.start.offset > 0 and self.start.epoch <= epoch:
            found = self.start
        for batch in self.batches:
            if batch.epoch <= epoch:
                found = OffsetAndEpoch(batch.next_offset, batch.epoch)
        return found

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        snapshot = self.snapshots.get(snapshot_id)
        return None if snapshot is None else len(snapshot.data)

    # What the shell does

    def append(self, epoch: int, records: Sequence[tuple[bytes, bytes]], *, control: bool = False) -> None:
        builder = BatchBuilder()
        for key, value in records:
            builder.append(key, value)
        data = bytes(builder.build(base_offset=self.end_offset, leader_epoch=epoch, control=control))
        self.append_fetched(data)

    def append_fetched(self, records: bytes) -> None:
        for position, header in layout.iterate(records):
            data = records[position : position + header.size_bytes]
            assert header.base_offset == self.end_offset
            assert header.partition_leader_epoch >= self.last_epoch
            self.batches.append(Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, data))

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one with this offset on; at least one, as Kafka does."""
        found = b""
        for batch in self.batches:
            if found and len(found) + len(batch.data) > max_bytes:
                break
            if batch.next_offset > offset:
                found += batch.data
        return found

    def truncate(self, end_offset: int) -> None:
        assert self.start.offset <= end_offset <= self.end_offset
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        self.truncations += 1

    def flush(self, end_offset: int) -> None:
        self._device = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.flushed_offset = max(self.flushed_offset, min(end_offset, self.end_offset))

    def take_snapshot(self, offset: int) -> None:
        """A snapshot of everything below, which must be the end of a batch; the log begins there from now on."""
        epoch = next(batch.epoch for batch in self.batches if batch.next_offset == offset)
        below = [batch for batch in self.batches if batch.next_offset <= offset]
        voters, kraft_version = self.configuration(offset)
        data = b"snapshot of %d records, epoch %d " % (offset, epoch) * 5
        self.start = OffsetAndEpoch(offset, epoch)
        self.snapshots = {self.start: Snapshot(data, voters, kraft_version)}
        self.batches = self.batches[len(below) :]
        self._device = [batch for batch in self._device if batch.base_offset >= offset]

    def install(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        self.start = snapshot_id
        self.snapshots = {snapshot_id: snapshot}
        self.batches, self._device = [], []
        self.flushed_offset = snapshot_id.offset
        self.truncations += 1

    def crash(self, randomness: random.Random) -> None:
        """Some of what was not flushed may be there all the same, from its beginning; some of it may not."""
        is_extension = self.batches[: len(self._device)] == self._device
        if is_extension:
            kept = randomness.randint(len(self._device), len(self.batches))
            self.batches = self.batches[:kept]
        elif randomness.random() < 0.5:
            self.batches = self._device
        else:
            self.batches = [batch for batch in self.batches if batch in self._device]
        self.truncations += 1
        self._device = list(self.batches)
        self.flushed_offset = self.end_offset

    def durable_end(self) -> int:
        """Where the log ends whatever happens now."""
        kept = self.start.offset
        for batch, on_device in zip(self.batches, self._device, strict=False):
            if batch != on_device:
                break
            kept = batch.next_offset
        return kept

    # What is in it

    def history(self) -> tuple[list[tuple[int, VoterSet]], int | None]:
        """The voters that the log names, and the last kraft.version."""
        fetched = control_records.check(
            b"".join(batch.data for batch in self.batches), offset=self.start.offset, last_epoch=0, leader_epoch=2**31
        )
        return fetched.voters, fetched.kraft_versions[-1][1] if fetched.kraft_versions else None

    def configuration(self, offset: int) -> tuple[VoterSet | None, int]:
        """What a snapshot that ends here has to say of the voters."""
        begun = self.snapshots.get(self.start) if self.start.offset else None
        voters, kraft_version = (begun.voters, begun.kraft_version) if begun else (None, 0)
        named, version = self.history()
        for at, voter_set in named:
            if at < offset:
                voters = voter_set
        return voters, kraft_version if version is None else version
