"""What of one log the device does not have yet, beside the records of its active segment.

Always true: whatever is taken for a flush is taken once. The work gets copies of all it needs, so the log may go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

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

    def take(self, disk: Disk, directory: str, epochs: LeaderEpochs) -> Callable[[], None]:
        """The work that brings it all to the device, to be done beside the event loop."""
        closed, self.segments = self.segments, []
        snapshots, self.snapshots = self.snapshots, []
        names_changed, self.names_changed = self.names_changed, False
        companion, self.companion = self.companion, None
        entries = list(epochs.entries) if epochs.dirty else None
        epochs.dirty = False

        def work() -> None:
            if companion is not None:
                companion.sync_blocking()
                companion.close()
            for segment in closed:
                segment.sync_blocking()
            for offset, data in snapshots:
                producer_snapshot.write(disk, directory, offset, data)
            if entries is not None:
                checkpoints.write_epochs(disk, f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}", entries)
            if names_changed:
                disk.sync_dir(directory)

        return work
