"""KRaft: unattached => no leader: a node that is attached to no leader names none."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.raft.messages import NO_NODE


class UnattachedHasNoLeader(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if after.role == "unattached" and after.leader_id != NO_NODE:
            raise Violation(f"is unattached in epoch {after.epoch}, and knows the leader {after.leader_id}")
