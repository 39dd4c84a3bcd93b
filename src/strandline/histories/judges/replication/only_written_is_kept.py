"""A11, A18: a replica holds only batches that a leader wrote, or what compaction left of them: nothing corrupt is
ever kept."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.histories.batches import LoggedBatch
from strandline.histories.compaction.cleaned_batches import is_part_of
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation


class OnlyWrittenIsKept(ReplicaJudge):
    def appended(
        self, observed: ReplicaObservation, node_id: int, key: Key, batches: Sequence[LoggedBatch], *, is_growth: bool
    ) -> None:
        if not is_growth and observed.is_rotten(node_id, key):
            return  # what rotted on this disk is found again when it is read; it must not get anywhere else
        written = observed.written[key]
        for batch in batches:
            known = written.get((batch.base_offset, batch.epoch))
            if known is None:
                if not batch.is_sound:
                    raise Violation(f"holds {batch}, whose checksum is not that of its bytes")
                written[batch.base_offset, batch.epoch] = batch
            elif (
                known is not batch and known != batch and not (observed.is_compacted(key) and is_part_of(batch, known))
            ):
                raise Violation(f"holds {batch}, and its leader wrote {known}")
