"""KRaft LeaderNeverLoadsSnapshot: a leader's log only grows at its end, and it asks no node for a snapshot."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.wire import FETCH_SNAPSHOT, QuorumMessage


class LeaderNeverLoadsSnapshot(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if before is None or not (before.leads and after.leads) or before.life != after.life:
            return
        if before.epoch == after.epoch and after.log_end_offset < before.log_end_offset:
            raise Violation(f"a leader cut its log from {before.log_end_offset} to {after.log_end_offset}")

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        seen = observed.nodes.get(sent.source)
        if sent.api_key == FETCH_SNAPSHOT and seen is not None and seen.leads and sent.epoch >= seen.epoch:
            raise Violation(f"leads in epoch {seen.epoch} and asks for a snapshot")
