"""KRaft SnapshotAtLogStart (D11): a log that does not begin at 0 begins at the end of a snapshot, of an epoch that
can be."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class SnapshotAtLogStart(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        start = after.log_start_offset
        if not start or (before is not None and before.log_start_offset == start and before.life == after.life):
            return
        at_start = [snapshot for snapshot in observed.members[node_id].snapshots() if snapshot.offset == start]
        if not at_start:
            raise Violation(f"the log begins at {start}, and no snapshot ends there")
        if any(snapshot.epoch > after.epoch for snapshot in at_start):
            raise Violation(f"the snapshot at {start} is of epoch {at_start[0].epoch}, later than {after.epoch}")
