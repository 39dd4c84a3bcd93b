"""I11: a follower fetches from its leader and from no other broker; a leader, or a replica without one, does not
fetch."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.metadata.records import NO_LEADER


class OneFetcher(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        follows = not after.leads and after.leader != NO_LEADER and after.is_online
        if after.fetched_from != (after.leader if follows else None) and observed.is_settled(node_id):
            raise Violation(f"is fetched from {after.fetched_from}: {after}")
