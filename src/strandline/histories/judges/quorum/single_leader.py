"""KRaft SingleLeader, election safety (D2): all nodes that name a leader of an epoch, in memory or on disk, name the
same one."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import NO_NODE


class SingleLeader(QuorumJudge):
    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if after.leads and after.leader_id != node_id:
            raise Violation(f"leads in epoch {after.epoch} and says that {after.leader_id} does")
        self._name(after.epoch, after.leader_id)

    def persisted(
        self, observed: QuorumObservation, node_id: int, before: ElectionState | None, after: ElectionState
    ) -> None:
        self._name(after.epoch, after.leader_id)

    def _name(self, epoch: int, leader_id: int) -> None:
        if leader_id == NO_NODE:
            return
        known = self._leaders.setdefault(epoch, leader_id)
        if known != leader_id:
            raise Violation(f"epoch {epoch} has two leaders, {known} and {leader_id}")
