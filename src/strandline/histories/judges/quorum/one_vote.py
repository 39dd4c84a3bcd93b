"""D2: a voter votes once in an epoch."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import VOTE, QuorumMessage


class OneVote(QuorumJudge):
    def __init__(self) -> None:
        self._votes: dict[tuple[int, int], int] = {}
        """By voter and epoch."""

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != VOTE or sent.pre_vote:
            return
        if not sent.response or sent.granted:  # a candidate that asks has voted for itself
            self._vote(sent.source, sent.epoch, sent.candidate_id)

    def _vote(self, voter: int, epoch: int, candidate: int) -> None:
        known = self._votes.setdefault((voter, epoch), candidate)
        if known != candidate:
            raise Violation(f"votes for {candidate} in epoch {epoch}, and did for {known}")

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        """It can't know what it did; that is why a voter must not come back without its disk while votes are cast."""
        self._votes = {key: candidate for key, candidate in self._votes.items() if key[0] != node_id}
