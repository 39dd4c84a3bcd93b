"""KRaft: unattached => no leader: who is attached to nobody names nobody."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation
from strandline.raft.messages import NO_NODE


class UnattachedHasNoLeader(Judge):
    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if after.role == "unattached" and after.leader_id != NO_NODE:
            raise Violation(f"is unattached in epoch {after.epoch}, and knows the leader {after.leader_id}")
