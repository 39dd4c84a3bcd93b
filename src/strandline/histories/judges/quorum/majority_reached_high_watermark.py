"""KRaft MajorityReachedHighWatermark (D9): a majority of the voters has everything below a leader's watermark on their
devices.

Where a voter lost its disk, what it had promised before counts on: the protocol can't take that back.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class MajorityReachedHighWatermark(QuorumJudge):
    def __init__(self) -> None:
        self._promised: dict[int, int] = {}
        """By voters that lost their disks: what was on them."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        high_watermark = after.high_watermark
        if not after.leads or not high_watermark or (before is not None and before.high_watermark == high_watermark):
            return
        ends = self._ends(observed, after)
        # Between two looks the watermark may rise first, by the voters that there were, and then the voters change.
        is_reached = self._is_reached(ends, after, high_watermark) or (
            before is not None and self._is_reached(self._ends(observed, before), before, high_watermark)
        )
        if not is_reached:
            raise Violation(f"high watermark {high_watermark}, and the voters' devices hold only {ends}")

    def _ends(self, observed: QuorumObservation, seen: QuorumNodeState) -> dict[int, int]:
        return {
            voter_id: max(observed.durable_offset.get(voter_id, 0), self._promised.get(voter_id, 0))
            for voter_id in seen.voters.ids
        }

    @staticmethod
    def _is_reached(ends: dict[int, int], seen: QuorumNodeState, high_watermark: int) -> bool:
        return sum(end >= high_watermark for end in ends.values()) >= seen.voters.majority

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        self._promised[node_id] = max(observed.durable_offset.get(node_id, 0), self._promised.get(node_id, 0))
