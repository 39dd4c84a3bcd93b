"""A12: who leads in an epoch has that epoch in its log from the first moment on, whether or not it has written anything."""

from __future__ import annotations

from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class EpochBegins(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if not after.leads or (
            before is not None and (before.leads, before.leader_epoch) == (True, after.leader_epoch)
        ):
            return
        partition = sight.partition(node_id, key)
        latest = None if partition is None else partition.log.epochs.latest
        if after.is_online and latest != after.leader_epoch:
            raise Violation(f"leads in epoch {after.leader_epoch}, and the newest in its log is {latest}")
