"""KRaft: reconfiguration is all or nothing (D13): one voter at a time, and in the end all nodes agree on the voters."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class OneVoterChangeAtATime(QuorumJudge):
    def __init__(self) -> None:
        self._changed_at: dict[int, int] = {}
        """By leader: the log end behind the record of its last change."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if (
            before is None
            or before.voters is after.voters
            or not (before.leads and after.leads)
            or (before.life, before.epoch) != (after.life, after.epoch)
        ):
            return
        here, there = set(before.voters.ids), set(after.voters.ids)
        if len(here ^ there) > 1:
            raise Violation(f"a leader changes the voters from {sorted(here)} to {sorted(there)} at once")
        pending = self._changed_at.get(node_id, 0)
        if here != there and pending > max(before.high_watermark or 0, after.high_watermark or 0):
            raise Violation(
                f"a leader changes the voters to {sorted(there)} before the change at {pending} is committed"
            )
        self._changed_at[node_id] = before.log_end_offset + 1

    def finished(self, observed: QuorumObservation) -> Iterable[str]:
        sets = {node_id: frozenset(seen.voters.ids) for node_id, seen in observed.nodes.items()}
        if len(set(sets.values())) > 1:
            yield f"the nodes do not agree on the voters: { {node_id: sorted(ids) for node_id, ids in sets.items()} }"

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        self._changed_at.pop(node_id, None)
