"""I7: nothing that is committed, and so nothing acknowledged by all, is absent from all brokers."""

from __future__ import annotations

from strandline.histories.replica_sight import RECOVERING, Key, Loss, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class CommittedIsSomewhere(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        """Looked at where a log is shorter than it was: cut, or opened again after a crash. A node that is down has what it had."""
        end_offset = sight.committed[key].end_offset
        if after.log_end_offset >= end_offset or (before is not None and after.log_end_offset >= before.log_end_offset):
            return
        state = sight.state(key)
        if state is None or sight.may_lose is not Loss.NOTHING or state.leader_recovery_state == RECOVERING:
            return
        ends = {i: replica.log_end_offset for (i, other), replica in sight.replicas.items() if other == key}
        if max(ends.values()) < end_offset:
            raise Violation(f"{end_offset} is committed, and the replicas end at {ends}")
