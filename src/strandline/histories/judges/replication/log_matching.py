"""I4, I8: below any replica's high watermark each offset has one batch, byte for byte, on every replica and for ever.

In a compacted topic cleaning may have taken records out of it, on one replica earlier than on another.
"""

from __future__ import annotations

from strandline.histories.batches import LoggedBatch
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class LogMatching(ReplicaJudge):
    def __init__(self) -> None:
        self._compared: dict[tuple[int, Key], tuple[int, int]] = {}
        """By replica: in which era, up to which offset."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        committed = observed.committed[key]
        era, offset = self._compared.get((node_id, key), (0, 0))
        if before is None or era != committed.era:
            offset = 0
        offset = max(min(offset, after.log_end_offset), after.log_start_offset)
        if after.high_watermark > offset and self._counts(observed, key, after):
            is_rotten = observed.is_rotten(node_id, key)
            for batch in observed.batches(node_id, key, offset, after.high_watermark):
                known = committed.batches.get(batch.base_offset)
                if known is None:
                    committed.batches[batch.base_offset] = batch
                elif (
                    known is not batch
                    and known != batch
                    and not is_rotten
                    and not _is_cleaned(observed, key, batch, known)
                ):
                    raise Violation(f"has {batch} committed, and another replica {known}")
                if batch.last_offset >= after.high_watermark and not committed.era:
                    raise Violation(f"the high watermark {after.high_watermark} lies within {batch}")
            offset = after.high_watermark
            committed.end_offset = max(committed.end_offset, offset)
        self._compared[node_id, key] = (committed.era, offset)

    @staticmethod
    def _counts(observed: ReplicaObservation, key: Key, after: ReplicaStatus) -> bool:
        """After a loss, a replica that has not cut its log yet still has what was lost."""
        committed = observed.committed[key]
        return not committed.era or (after.leads and after.leader_epoch >= committed.lost_in_epoch)


def _is_cleaned(observed: ReplicaObservation, key: Key, one: LoggedBatch, other: LoggedBatch) -> bool:
    """Both are what is left of one batch; that it is sound is judged by OnlyWrittenIsKept."""
    return observed.is_compacted(key) and (one.last_offset, one.epoch) == (other.last_offset, other.epoch)
