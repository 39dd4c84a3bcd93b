"""I11: a follower is fetched from its leader and from nobody else; what is led here, or has no leader, from nobody."""

from __future__ import annotations

from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation
from strandline.metadata.records import NO_LEADER


class OneFetcher(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        follows = not after.leads and after.leader != NO_LEADER and after.is_online
        if after.fetched_from != (after.leader if follows else None) and sight.is_settled(node_id):
            raise Violation(f"is fetched from {after.fetched_from}: {after}")
