"""KRaft: no illegal state: what a node is and whom it takes for the leader go together."""

from __future__ import annotations

from strandline.histories.quorum_observation import LEADER, QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.raft.messages import NO_NODE


class LegalStates(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        role, leader_id = after.role, after.leader_id
        if role == "follower" and leader_id in (NO_NODE, node_id):
            raise Violation(f"a follower of {leader_id} in epoch {after.epoch}")
        if role in ("candidate", "resigned") and leader_id != NO_NODE:
            raise Violation(f"{role} in epoch {after.epoch}, and knows the leader {leader_id}")
        if role == LEADER and leader_id != node_id:
            raise Violation(f"leads in epoch {after.epoch}, and takes {leader_id} for the leader")
        if after.log_end_offset < max(after.log_start_offset, after.flushed_offset):
            raise Violation(
                f"a log of {after.log_start_offset}-{after.log_end_offset} that is flushed to {after.flushed_offset}"
            )
