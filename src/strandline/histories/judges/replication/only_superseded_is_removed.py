"""F1, F2: compaction removes records that a later committed one with the same key supersedes, and old tombstones."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.histories.batches import Batch
from strandline.histories.compaction.sight import Newest
from strandline.histories.replica_sight import Key, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class OnlySupersededIsRemoved(ReplicaJudge):
    def __init__(self) -> None:
        self._newest: dict[Key, Newest] = {}

    def appended(
        self, sight: ReplicaSight, node_id: int, key: Key, batches: Sequence[Batch], *, is_growth: bool
    ) -> None:
        if is_growth or not sight.is_compacted(key) or sight.is_rotten(node_id, key):
            return
        committed = sight.committed[key]
        newest = self._newest.setdefault(key, Newest())
        newest.learn(committed.batches)
        here = {batch.base_offset: batch for batch in batches}
        start = sight.replicas[node_id, key].log_start_offset
        end, epoch = batches[-1].last_offset, batches[-1].epoch
        for base_offset, written in committed.batches.items():
            if base_offset < start or base_offset > end or here.get(base_offset) == written:
                continue
            if written.epoch > epoch:
                continue  # a deposed leader, which has something else there and will cut it
            lost = newest.unexplained(written, here.get(base_offset))
            if lost:
                raise Violation(f"has lost {lost[0]} of {written}, which nothing supersedes")
