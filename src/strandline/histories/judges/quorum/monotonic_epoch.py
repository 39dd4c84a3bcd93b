"""KRaft MonotonicEpoch (D1): a node's epoch never moves back, across restarts too: memory has what the disk has, or
newer."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.raft.election_state import ElectionState


class MonotonicEpoch(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if before is not None and after.epoch < before.epoch and before.life == after.life:
            raise Violation(f"the epoch moved back from {before.epoch} to {after.epoch}")
        saved = observed.elections.get(node_id)
        if saved is not None and after.epoch < saved.epoch:
            raise Violation(f"epoch {after.epoch} in memory, {saved.epoch} on disk")
        # A quorum of one elects itself before it saves; no other node has heard of it then.
        if after.leads and len(after.voters) > 1 and (saved is None or saved.epoch < after.epoch):
            raise Violation(f"leads in epoch {after.epoch}, and its disk knows only {saved}")

    def persisted(
        self, observed: QuorumObservation, node_id: int, before: ElectionState | None, after: ElectionState
    ) -> None:
        if before is not None and after.epoch < before.epoch:
            raise Violation(f"the epoch on disk moved back from {before.epoch} to {after.epoch}")
