"""I7: nothing that is committed, and so nothing acknowledged by all, is absent from all brokers."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import (
    RECOVERING,
    Key,
    PermittedLoss,
    ReplicaJudge,
    ReplicaObservation,
    ReplicaStatus,
)


class CommittedIsSomewhere(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        """Looked at where a log is shorter than it was: cut, or opened again after a crash. A node that is down has
        what it had."""
        end_offset = observed.committed[key].end_offset
        if after.log_end_offset >= end_offset or (before is not None and after.log_end_offset >= before.log_end_offset):
            return
        state = observed.state(key)
        if state is None or observed.may_lose is not PermittedLoss.NOTHING or state.leader_recovery_state == RECOVERING:
            return
        ends = {i: replica.log_end_offset for (i, other), replica in observed.replicas.items() if other == key}
        if max(ends.values()) < end_offset:
            raise Violation(f"{end_offset} is committed, and the replicas end at {ends}")
