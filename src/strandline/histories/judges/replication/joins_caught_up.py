"""B1: who is wished into the ISR has all that was there when its leader's epoch began."""

from __future__ import annotations

from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class JoinsCaughtUp(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        wish = after.wish
        if wish is None or not after.leads or (before is not None and before.wish is wish):
            return
        partition = sight.partition(node_id, key)
        start_offset = None if partition is None else partition.epoch_start_offset
        if start_offset is None:
            return
        for joining, epoch in wish.isr:
            broker = sight.image.brokers.get(joining)
            replica = sight.replicas.get((joining, key))
            if joining in after.isr or replica is None or broker is None or broker.epoch != epoch:
                continue
            if replica.log_end_offset < start_offset and sight.is_current(joining):
                raise Violation(
                    f"wishes that {joining} joins the ISR, which ends at {replica.log_end_offset}; epoch "
                    f"{after.leader_epoch} began at {start_offset}"
                )
