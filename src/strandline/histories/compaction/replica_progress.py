"""When each replica of a compacted partition got a record: one that was away for `delete.retention.ms` may miss a
tombstone.

The others may have removed the tombstone by then (F3), so that the late replica keeps the value that it deleted. Apache
Kafka has the same limit; a replica that was there in time has no such excuse.

Always true: a replica that lost its tail has those records from when it got them again.
"""

from __future__ import annotations

from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class ReplicaProgress(ReplicaJudge):
    def __init__(self) -> None:
        self._reached: dict[tuple[int, Key], list[tuple[int, float]]] = {}
        """By replica: log end offsets, rising, and when its log got there."""
        self._first: dict[Key, list[tuple[int, float]]] = {}
        """The same of whichever replica was first."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if observed.is_compacted(key):
            self.note(node_id, key, after.log_end_offset, observed.now)

    def note(self, node_id: int, key: Key, log_end_offset: int, now: float) -> None:
        reached = self._reached.setdefault((node_id, key), [])
        while reached and reached[-1][0] > log_end_offset:
            reached.pop()
        for ends in (reached, self._first.setdefault(key, [])):
            if not ends or ends[-1][0] < log_end_offset:
                ends.append((log_end_offset, now))

    def was_late(self, node_id: int, key: Key, offset: int, delete_retention_s: float) -> bool:
        """Whether a tombstone at this offset could be gone everywhere before this replica got it."""
        first, own = (_when(ends, offset) for ends in (self._first.get(key, []), self._reached.get((node_id, key), [])))
        return first is not None and (own is None or own - first >= delete_retention_s)


def _when(ends: list[tuple[int, float]], offset: int) -> float | None:
    return next((when for end, when in ends if end > offset), None)
