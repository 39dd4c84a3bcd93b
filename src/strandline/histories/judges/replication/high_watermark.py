"""A1, A11: a replica's high watermark lies within what it vouches for, and moves back only after an unclean
election."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class ReplicaHighWatermark(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if not after.log_start_offset <= after.high_watermark <= after.local_end <= after.log_end_offset:
            raise Violation(f"{after}")
        if before is not None and after.high_watermark < before.high_watermark:
            if after.leads and before.leader_epoch == after.leader_epoch:
                raise Violation(f"the high watermark of epoch {after.leader_epoch} moved back: {before}, {after}")
            if not observed.committed[key].era:
                raise Violation(f"what was committed is cut: {before}, {after}")
