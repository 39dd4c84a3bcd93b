"""The high watermark never moves back (D7): not in one process, and not from one leader to the next; how it moves on."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation


class MonotonicHighWatermark(Checker):
    def __init__(self) -> None:
        self._of_leaders = (0, -1)
        """The greatest that a leader had, and in which epoch."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
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


class CommittedInOwnEpoch(Checker):
    """A leader commits what came before it only with a record of its own epoch (D7): the last one below is of that epoch."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        high_watermark = after.high_watermark
        if not after.leads or not high_watermark or (before is not None and before.high_watermark == high_watermark):
            return
        for batch in sight.storage[node_id].batches(high_watermark - 1, high_watermark):
            if batch.epoch != after.epoch:
                raise Violation(f"leader of epoch {after.epoch} commits to {high_watermark} with {batch}")
