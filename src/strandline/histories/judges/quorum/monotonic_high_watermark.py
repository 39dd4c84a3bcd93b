"""KRaft MonotonicHighWatermark (D7): the high watermark never moves back, in one process or from one leader to the
next."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class MonotonicHighWatermark(QuorumJudge):
    def __init__(self) -> None:
        self._of_leaders = (0, -1)
        """The greatest that a leader had, and in which epoch."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        high_watermark = after.high_watermark
        if high_watermark is None:
            return
        if (
            before is not None
            and before.life == after.life
            and before.high_watermark is not None
            and high_watermark < before.high_watermark
        ):
            raise Violation(f"the high watermark moved back from {before.high_watermark} to {high_watermark}")
        if not after.leads:
            return
        # A leader that was deposed and does not know it yet may still lag: it is measured against its own epoch only.
        greatest, epoch = self._of_leaders
        if after.epoch >= epoch and high_watermark < greatest:
            raise Violation(
                f"leader of epoch {after.epoch} with high watermark {high_watermark}; it was {greatest} in epoch {epoch}"
            )
        if high_watermark > greatest:
            self._of_leaders = (high_watermark, max(epoch, after.epoch))
