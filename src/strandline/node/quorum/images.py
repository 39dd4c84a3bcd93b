"""The images of the metadata: the committed one, and on the leader the one that it decides on.

Always true: the committed image has every record below its end offset, each once and in order (rule D14), and none above the
high watermark; of a metadata transaction it has all records or none. The tip is the committed image with what was decided
since; it exists only while this node is the active controller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.metadata.replay import replay
from strandline.node.quorum.batches import MetadataBatch, is_within_transaction, whole_transactions
from strandline.node.quorum.snapshots import Snapshot
from strandline.raft.control_records import read_voters
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.voters import VoterSet
from strandline.wire.messages import encode_data


class Decision(NamedTuple):
    """What was decided and appended here, and what the metadata is with it."""

    start_offset: int
    end_offset: int
    size_bytes: int
    timestamp_ms: int
    image: MetadataImage
    done: asyncio.Future[None]


class LoadedSnapshot(NamedTuple):
    """What a snapshot holds."""

    image: MetadataImage
    kraft_version: int
    voters: VoterSet | None
    timestamp_ms: int


def load(snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> LoadedSnapshot:
    """Plain work, which may take long."""
    voters = None if snapshot.voters is None else read_voters(encode_data("VotersRecord", 0, snapshot.voters))
    image = replay(MetadataImage(), snapshot.records, *snapshot_id)
    return LoadedSnapshot(image, snapshot.kraft_version, voters, snapshot.last_contained_timestamp)


class Images:
    def __init__(self) -> None:
        self.committed = MetadataImage()
        self.position = 0
        """Everything below was read. Within a metadata transaction this is ahead of the committed image."""
        self.kraft_version = 0
        self.voters: VoterSet | None = None
        """As the committed log has them; None if it does not say."""
        self.timestamp_ms = 0
        """Of the last batch in the committed image."""
        self.unsaved_bytes = 0
        """Read since the last snapshot."""
        self.is_within_transaction = False
        self._held: list[MetadataRecord] = []
        """Of the transaction that is open, and of the batch that it began in."""
        self._tip: MetadataImage | None = None
        self._decisions: deque[Decision] = deque()

    # Committed

    def load(self, loaded: LoadedSnapshot) -> None:
        """Begin anew with a snapshot."""
        self.committed = loaded.image
        self.position = loaded.image.end_offset
        self.kraft_version, self.voters = loaded.kraft_version, loaded.voters
        self.timestamp_ms = loaded.timestamp_ms
        self.unsaved_bytes = 0
        self.is_within_transaction, self._held = False, []

    def replay(self, batches: Sequence[MetadataBatch]) -> None:
        """These batches are committed, and come next."""
        ready: list[MetadataRecord] = []
        end: MetadataBatch | None = None
        for batch in batches:
            assert batch.end_offset > self.position, "each batch is replayed once"
            self.position = batch.end_offset
            self.unsaved_bytes += batch.size_bytes
            self._note_control(batch)
            self._held += batch.records
            self.is_within_transaction = is_within_transaction(batch.records, self.is_within_transaction)
            if not self.is_within_transaction:
                ready += whole_transactions(self._held)
                self._held = []
                end = batch
        if end is not None:
            self.committed = replay(self.committed, ready, end.end_offset, end.epoch)
            self.timestamp_ms = end.timestamp_ms

    def _note_control(self, batch: MetadataBatch) -> None:
        if batch.voters is not None:
            self.voters = batch.voters
        if batch.kraft_version is not None:
            self.kraft_version = batch.kraft_version

    # Decided

    @property
    def tip(self) -> MetadataImage:
        return self.committed if self._tip is None else self._tip

    @property
    def has_tip(self) -> bool:
        return self._tip is not None

    def begin_deciding(self, end_offset: int, epoch: int) -> None:
        """Everything in the log is known, and no other node appends from here on."""
        self._tip = replay(self.committed, (), end_offset, epoch)

    def advance_tip(self, records: Iterable[MetadataRecord], end_offset: int, epoch: int) -> None:
        self._tip = replay(self.tip, records, end_offset, epoch)

    def add(self, decision: Decision) -> None:
        self._decisions.append(decision)

    @property
    def last_decision(self) -> Decision | None:
        """The newest one that is not answered yet."""
        return self._decisions[-1] if self._decisions else None

    @property
    def next_decision(self) -> Decision | None:
        """The oldest one that is not replayed, committed or not."""
        return self._decisions[0] if self._decisions else None

    def take(self) -> Decision:
        """Replay the oldest decision: its image is there already."""
        decision = self._decisions.popleft()
        assert decision.start_offset == self.position
        assert not self._held, "decisions begin behind what was torn"
        self.committed = decision.image
        self.position = decision.end_offset
        self.timestamp_ms = decision.timestamp_ms
        self.unsaved_bytes += decision.size_bytes
        return decision

    def stop_deciding(self, high_watermark: int) -> list[Decision]:
        """Leadership is gone: the tip is dropped, and so are the decisions that are not committed, which are returned."""
        self._tip = None
        lost = [decision for decision in self._decisions if decision.end_offset > high_watermark]
        for _ in lost:
            self._decisions.pop()
        return lost

    def check_invariants(self) -> None:
        committed_end = self.committed.end_offset
        assert bool(self._held) == self.is_within_transaction, f"{len(self._held)} records are held"
        if self.is_within_transaction:
            assert committed_end < self.position, (
                f"{committed_end} is committed of a transaction read to {self.position}"
            )
        else:
            assert committed_end == self.position, f"committed is {committed_end}, read {self.position}"
        end_offset = self.position
        for decision in self._decisions:
            assert end_offset <= decision.start_offset < decision.end_offset, (
                f"a decision from {decision.start_offset} to {decision.end_offset} after {end_offset}"
            )
            end_offset = decision.end_offset
        if self._tip is not None and self._decisions:
            assert end_offset <= self._tip.end_offset, f"decided to {end_offset}, the tip is {self._tip.end_offset}"
