"""D5, D12: a leader from whom a majority of the voters does not fetch any more leads no more.

A Fetch counts when it leaves its voter, whether or not it arrives; a leader that is held or down can't know. Looked at
now and then, whenever a voter fetches.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.wire import FETCH, FETCH_SNAPSHOT, QuorumMessage

EVERY_S = 0.5
TIMEOUTS = 2.0
"""Fetch timeouts: half of one more than it may take, and clocks drift by a tenth."""
GRACE_S = 1.0


class CheckQuorum(QuorumJudge):
    def __init__(self) -> None:
        self._led: dict[int, float] = {}
        """By leader: since when it leads."""
        self._fetched: dict[tuple[int, int], float] = {}
        """By epoch and voter: when it last did."""
        self._forsaken: dict[int, float] = {}
        """Leaders that should know by now, and since when."""
        self._look_at = 0.0

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        self._led.pop(node_id, None)
        self._forsaken.pop(node_id, None)

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if not after.leads:
            self.wiped(observed, node_id)
        elif before is None or (before.leads, before.epoch, before.life) != (True, after.epoch, after.life):
            self._led[node_id] = observed.now()

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.response or (sent.api_key != FETCH and sent.api_key != FETCH_SNAPSHOT):
            return
        now = observed.now()
        self._fetched[sent.epoch, sent.source] = now
        if now >= self._look_at:
            self._look_at = now + EVERY_S
            for node_id, since in self._led.items():
                self._look(observed, node_id, since, now)

    def _look(self, observed: QuorumObservation, node_id: int, since: float, now: float) -> None:
        seen = observed.nodes[node_id]
        others = [voter_id for voter_id in seen.voters.ids if voter_id != node_id]
        needed = seen.voters.majority - (len(others) < len(seen.voters))
        if needed <= 0:
            return
        heard = sorted((self._fetched.get((seen.epoch, voter_id), since) for voter_id in others), reverse=True)
        silent_s = now - max(heard[needed - 1], since)
        if silent_s <= TIMEOUTS * observed.fetch_timeout_s(node_id) or not observed.is_running(node_id):
            self._forsaken.pop(node_id, None)
        elif now - self._forsaken.setdefault(node_id, now) > GRACE_S:
            raise Violation(
                f"{node_id} leads in epoch {seen.epoch}, and no majority of {seen.voters.ids} fetched for {silent_s:.1f} s"
            )
