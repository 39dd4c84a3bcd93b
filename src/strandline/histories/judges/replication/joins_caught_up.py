"""B1: a replica that is proposed to join the ISR has all that was there when its leader's epoch began."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class JoinsCaughtUp(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        proposed = after.proposed_isr
        if proposed is None or not after.leads or (before is not None and before.proposed_isr is proposed):
            return
        partition = observed.partition(node_id, key)
        start_offset = None if partition is None else partition.epoch_start_offset
        if start_offset is None:
            return
        for joining, epoch in proposed.isr:
            broker = observed.image.brokers.get(joining)
            replica = observed.replicas.get((joining, key))
            if joining in after.isr or replica is None or broker is None or broker.epoch != epoch:
                continue
            if replica.log_end_offset < start_offset and observed.is_current(joining):
                raise Violation(
                    f"proposes that {joining} joins the ISR, which ends at {replica.log_end_offset}; epoch "
                    f"{after.leader_epoch} began at {start_offset}"
                )
