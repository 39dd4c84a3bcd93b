"""I1 of the quorum: a new leader holds everything that was committed, and so acknowledged, in earlier epochs."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class LeaderHasAllCommitted(QuorumJudge):
    def __init__(self) -> None:
        self._committed = (0, -1)
        """The greatest high watermark of a leader, and the epoch in which it was reached."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if not after.leads:
            return
        committed, epoch = self._committed
        began = before is None or not before.leads or before.epoch != after.epoch or before.life != after.life
        if began and after.epoch > epoch and after.log_end_offset < committed:
            raise Violation(
                f"leads in epoch {after.epoch} with log end {after.log_end_offset}; {committed} was committed in epoch {epoch}"
            )
        if after.high_watermark is not None and after.high_watermark > committed:
            self._committed = (after.high_watermark, max(epoch, after.epoch))
