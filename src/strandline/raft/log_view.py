"""What Raft sees of the metadata log: where it begins and ends, in which epochs, and its snapshots.

Always true: the view shows what is written, whether or not it is on the device already; everything in it is in memory.
"""

from __future__ import annotations

from typing import Protocol

from strandline.raft.messages import OffsetAndEpoch


class LogView(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int:
        """Everything below is on the device."""

    @property
    def last_epoch(self) -> int:
        """Of the last record, or of the snapshot that the log begins with if nothing follows it; 0 if there is neither."""

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch at most `epoch` in the log or its earliest snapshot, and where it ends; offset -1 if none."""

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None: ...

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """In bytes; None if there is no such snapshot."""
