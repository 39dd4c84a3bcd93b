"""D13: who becomes a voter has had, a moment before, what was committed then: a quorum does not stand still for it.

A moment is what check quorum allows, and half as much again, since clocks drift.
"""

from __future__ import annotations

from collections import deque

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation

TIMEOUTS = 3.0
GRACE_S = 2.0


class AddedVoterHasCaughtUp(QuorumJudge):
    def __init__(self) -> None:
        self._committed: deque[tuple[float, int]] = deque()
        """When what was committed, the newest last; the first is a moment old."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        now = observed.now()
        if after.high_watermark is not None and (not self._committed or after.high_watermark > self._committed[-1][1]):
            self._committed.append((now, after.high_watermark))
        if (
            before is None
            or before.voters is after.voters
            or not (before.leads and after.leads)
            or (before.life, before.epoch) != (after.life, after.epoch)
        ):
            return
        long_ago = now - TIMEOUTS * observed.fetch_timeout_s(node_id) - GRACE_S
        while len(self._committed) > 1 and self._committed[1][0] < long_ago:
            self._committed.popleft()
        needed = self._committed[0][1] if self._committed and self._committed[0][0] < long_ago else 0
        for added in set(after.voters.ids) - set(before.voters.ids):
            seen = observed.nodes.get(added)
            end_offset = 0 if seen is None else seen.log_end_offset
            if end_offset < needed:
                raise Violation(f"adds the voter {added}, which has {end_offset} of the {needed} of long ago")
