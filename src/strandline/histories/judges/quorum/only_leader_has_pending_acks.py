"""KRaft: only the leader has pending acks: a node that leads no more has refused all requests that wait for a commit."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation

WITHIN_S = 5.0
"""Leadership is given up on the device first, which may be slow."""


class OnlyLeaderHasPendingAcks(QuorumJudge):
    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if not self._waits(after):
            self._since.pop(node_id, None)
            return
        if before is not None and before.life != after.life:
            self._since.pop(node_id, None)
        since = self._since.setdefault(node_id, observed.now())
        if observed.now() - since > WITHIN_S:
            raise Violation(
                f"{after.role} of epoch {after.epoch}, and a request waits for {after.pending_end} since {since:.3f} s"
            )

    @staticmethod
    def _waits(seen: QuorumNodeState) -> bool:
        return not seen.leads and seen.pending_end > (seen.high_watermark or 0)

    def finished(self, observed: QuorumObservation) -> Iterable[str]:
        for node_id in self._since:
            if self._waits(observed.nodes[node_id]):
                yield f"n{node_id} does not lead, and a request waits for {observed.nodes[node_id].pending_end}"

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        self._since.pop(node_id, None)
