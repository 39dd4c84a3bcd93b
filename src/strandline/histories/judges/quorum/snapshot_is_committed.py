"""D11: a snapshot holds what is committed, and nothing beyond."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class SnapshotIsCommitted(QuorumJudge):
    def __init__(self) -> None:
        self._committed = 0

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if after.high_watermark is not None and after.high_watermark > self._committed:
            self._committed = after.high_watermark
        snapshot = after.snapshot
        if snapshot is not None and snapshot.offset > self._committed:
            raise Violation(f"has a snapshot at {snapshot.offset}, and {self._committed} is committed")
