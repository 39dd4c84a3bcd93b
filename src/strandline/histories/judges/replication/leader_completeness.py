"""I1: who becomes leader has all that was committed; after an unclean election, all but what the faults may take."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import (
    RECOVERING,
    Key,
    PermittedLoss,
    ReplicaJudge,
    ReplicaObservation,
    ReplicaStatus,
)
from strandline.metadata.image import TOPIC_RESOURCE

FLUSH = "flush.messages"


class LeaderCompleteness(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if not after.leads or (
            before is not None and (before.leads, before.leader_epoch) == (True, after.leader_epoch)
        ):
            return
        state = observed.state(key)
        if state is None or state.leader_epoch != after.leader_epoch:
            return  # deposed before it knew that it led
        committed = observed.committed[key]
        matching = self._matching(observed, node_id, key, after)
        if matching >= committed.end_offset:
            return
        text = f"leads in epoch {after.leader_epoch} with {matching} of the {committed.end_offset} that are committed"
        if state.leader_recovery_state != RECOVERING:
            raise Violation(f"{text}: {state}")
        is_synced = observed.image.config(TOPIC_RESOURCE, observed.image.topics_by_id[key[0]].name).get(FLUSH) == "1"
        if observed.may_lose is PermittedLoss.NOTHING or (observed.may_lose is PermittedLoss.UNSYNCED and is_synced):
            raise Violation(f"{text}, after an unclean election: {state}")
        observed.lose(key, matching, after.leader_epoch)

    @staticmethod
    def _matching(observed: ReplicaObservation, node_id: int, key: Key, after: ReplicaStatus) -> int:
        """Up to which offset its log is the committed one. What has rotted counts as there: it is never served."""
        committed = observed.committed[key]
        here = {batch.base_offset: batch for batch in observed.batches(node_id, key, 0, committed.end_offset)}
        is_rotten, is_compacted = observed.is_rotten(node_id, key), observed.is_compacted(key)
        for base_offset, batch in sorted(committed.batches.items()):
            found = here.get(base_offset)
            if base_offset < after.log_start_offset or found == batch:
                continue
            if is_compacted and base_offset < after.log_end_offset and (found is None or found.epoch == batch.epoch):
                continue  # what is missing is judged by OnlySupersededIsRemoved
            if not is_rotten or base_offset >= after.log_end_offset:
                return base_offset
        return committed.end_offset
