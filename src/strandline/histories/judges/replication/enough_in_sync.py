"""A2: a leader commits nothing while fewer than min.insync.replicas are in sync, also for acks=1."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class EnoughInSync(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is None or not (before.leads and after.leads) or after.high_watermark <= before.high_watermark:
            return
        enough = observed.min_isr(node_id, key)
        if enough is None:
            return
        if len(before.isr) < enough and len(after.isr) < enough:
            raise Violation(f"commits to {after.high_watermark} with {after.isr} in sync")
