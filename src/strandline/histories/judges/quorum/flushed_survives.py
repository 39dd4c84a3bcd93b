"""D8: only what was not flushed is lost: a node comes back with all of the metadata log that was ever on its device."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class FlushedSurvives(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if before is not None and before.life != after.life and after.log_end_offset < observed.safe_before:
            raise Violation(
                f"comes back with {after.log_end_offset} of the {observed.safe_before} that were on its device"
            )
