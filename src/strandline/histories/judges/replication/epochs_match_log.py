"""A7, A12: what a replica knows of leader epochs is what its batches say, so OffsetForLeaderEpoch is answered
correctly.

Looked at when a log was opened, and when its replica begins to lead.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class EpochsMatchLog(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is not None and (before.leads, before.leader_epoch) == (after.leads, after.leader_epoch):
            return
        partition = observed.partition(node_id, key)
        if partition is None or not after.is_online or observed.is_rotten(node_id, key):
            return
        log = partition.log
        for batch in observed.batches(node_id, key, after.log_start_offset, after.log_end_offset):
            known = log.epochs.epoch_at(batch.base_offset)
            _, end = log.epochs.end_offset_for(batch.epoch, log.log_end_offset)
            if known != batch.epoch or end <= batch.last_offset:
                raise Violation(
                    f"has {batch}, and takes that offset for epoch {known} and {batch.epoch} to end at {end}"
                )
