"""A2: a leader commits nothing while fewer than min.insync.replicas are in sync, also for acks=1."""

from __future__ import annotations

from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class EnoughInSync(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if before is None or not (before.leads and after.leads) or after.high_watermark <= before.high_watermark:
            return
        enough = sight.min_isr(node_id, key)
        if enough is None:
            return
        if len(before.isr) < enough and len(after.isr) < enough:
            raise Violation(f"commits to {after.high_watermark} with {after.isr} in sync")
