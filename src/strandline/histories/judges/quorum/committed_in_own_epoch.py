"""D6, D7: a leader commits what came before it only with a record of its own epoch, and knows of no watermark until
then.

So the last batch below its high watermark is of that epoch.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class CommittedInOwnEpoch(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        high_watermark = after.high_watermark
        if not after.leads or not high_watermark:
            return
        if before is not None and (before.leads, before.epoch, before.high_watermark) == (
            True,
            after.epoch,
            high_watermark,
        ):
            return
        for batch in observed.members[node_id].batches(high_watermark - 1, high_watermark):
            if batch.epoch != after.epoch:
                raise Violation(f"leader of epoch {after.epoch} commits to {high_watermark} with {batch}")
