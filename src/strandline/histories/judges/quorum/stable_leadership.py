"""KRaft StableLeadership (D4): once a node leads, no other does; for nemeses that leave the leader its majority.

It holds between `begin` and `end`, which such a nemesis calls; outside of them leaders may come and go.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class StableLeadership(QuorumJudge):
    def __init__(self, *, is_asked: bool = False) -> None:
        self.is_asked = is_asked
        self._leads: tuple[int, int] | None = None

    def begin(self) -> None:
        self.is_asked, self._leads = True, None

    def end(self) -> None:
        self.is_asked = False

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if not after.leads or not self.is_asked:
            return
        leads = (after.epoch, node_id)
        if self._leads is None:
            self._leads = leads
        elif self._leads != leads:
            raise Violation(
                f"leads in epoch {after.epoch}, and {self._leads[1]} did in epoch {self._leads[0]} without need"
            )
