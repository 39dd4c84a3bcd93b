"""F1, F2: compaction removes records that a later committed one with the same key supersedes, and old tombstones;
and what was aborted."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.histories.batches import LoggedBatch
from strandline.histories.compaction.cleaned_batches import NewestOffsets
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation


class OnlySupersededIsRemoved(ReplicaJudge):
    def __init__(self) -> None:
        self._newest: dict[Key, NewestOffsets] = {}

    def appended(
        self, observed: ReplicaObservation, node_id: int, key: Key, batches: Sequence[LoggedBatch], *, is_growth: bool
    ) -> None:
        if is_growth or not observed.is_compacted(key) or observed.is_rotten(node_id, key):
            return
        committed = observed.committed[key]
        newest = self._newest.setdefault(key, NewestOffsets())
        newest.learn(committed.batches)
        here = {batch.base_offset: batch for batch in batches}
        start = observed.replicas[node_id, key].log_start_offset
        end, epoch = batches[-1].last_offset, batches[-1].epoch
        for base_offset, written in committed.batches.items():
            if base_offset < start or base_offset > end or here.get(base_offset) == written:
                continue
            if written.epoch > epoch:
                continue  # a deposed leader, which has something else there and will cut it
            lost = newest.unexplained(written, here.get(base_offset))
            if lost:
                raise Violation(f"has lost {lost[0]} of {written}, which nothing supersedes")
