"""D10: no process cuts what it knows to be committed of the metadata log."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class CommittedIsKept(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if before is None or before.life != after.life or before.high_watermark is None:
            return
        if after.log_end_offset < min(before.log_end_offset, before.high_watermark):
            raise Violation(f"the log ends at {after.log_end_offset}, and {before.high_watermark} is committed")
