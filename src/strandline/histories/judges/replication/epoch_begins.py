"""A12: who leads in an epoch has that epoch in its log from the first moment on, whether or not it has written
anything."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class EpochBegins(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if not after.leads or (
            before is not None and (before.leads, before.leader_epoch) == (True, after.leader_epoch)
        ):
            return
        partition = observed.partition(node_id, key)
        latest = None if partition is None else partition.log.epochs.latest
        if after.is_online and latest != after.leader_epoch:
            raise Violation(f"leads in epoch {after.leader_epoch}, and the newest in its log is {latest}")
