"""D11: a snapshot holds what is committed, and nothing beyond."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation


class SnapshotIsCommitted(Judge):
    def __init__(self) -> None:
        self._committed = 0

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if after.high_watermark is not None and after.high_watermark > self._committed:
            self._committed = after.high_watermark
        snapshot = after.snapshot
        if snapshot is not None and snapshot.offset > self._committed:
            raise Violation(f"has a snapshot at {snapshot.offset}, and {self._committed} is committed")
