"""What of one log the device does not have yet, beside the records of its active segment.

Always true: whatever is taken for a flush is taken once, or given back. The flush has copies of all it needs, so the log may go on
meanwhile.
"""

from __future__ import annotations

from collections.abc import Container

from strandline.log import checkpoints, producer_snapshot
from strandline.log.epochs import LeaderEpochs
from strandline.log.segment import Segment
from strandline.ports import Disk, File


class UnsyncedFiles:
    __slots__ = ("companion", "names_changed", "segments", "snapshots")

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        """Those that were closed."""
        self.snapshots: list[tuple[int, bytes]] = []
        """Of the producers, with their offsets: yet to be written."""
        self.names_changed = True
        """A file came into the directory, or left it."""
        self.companion: File | None = None
        """A small new file in the directory."""

    def take(self, epochs: LeaderEpochs) -> TakenFiles:
        """All of it, to be brought to the device beside the event loop."""
        taken = TakenFiles(self.segments, self.snapshots, self.names_changed, self.companion, epochs)
        self.segments, self.snapshots, self.names_changed, self.companion = [], [], False, None
        epochs.dirty = False
        return taken

    def give_back(
        self, taken: TakenFiles, segments: Container[Segment], epochs: LeaderEpochs, *, with_snapshots: bool
    ) -> None:
        """It could not be brought there this time: what is still in the log is to be tried again."""
        self.segments = [segment for segment in taken.segments if segment in segments] + self.segments
        if with_snapshots:
            self.snapshots = taken.snapshots + self.snapshots
        self.names_changed = True
        if self.companion is None:
            self.companion = taken.companion
        epochs.dirty = epochs.dirty or taken.entries is not None


class TakenFiles:
    __slots__ = ("companion", "entries", "names_changed", "segments", "snapshots")

    def __init__(
        self,
        segments: list[Segment],
        snapshots: list[tuple[int, bytes]],
        names_changed: bool,
        companion: File | None,
        epochs: LeaderEpochs,
    ) -> None:
        self.segments = segments
        self.snapshots = snapshots
        self.names_changed = names_changed
        self.companion = companion
        self.entries = list(epochs.entries) if epochs.dirty else None

    def bring(self, disk: Disk, directory: str) -> None:
        """Bring it all to the device. Blocks; may be done again."""
        if self.companion is not None:
            self.companion.sync_blocking()
            self.companion.close()
            self.companion = None
        for segment in self.segments:
            segment.sync_blocking()
        for offset, data in self.snapshots:
            producer_snapshot.write(disk, directory, offset, data)
        if self.entries is not None:
            checkpoints.write_epochs(disk, f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}", self.entries)
        if self.names_changed:
            disk.sync_dir(directory)
