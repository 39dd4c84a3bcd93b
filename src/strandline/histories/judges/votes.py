"""Votes: one for each voter and epoch, and on the device before anybody hears of it (D1, D2)."""

from __future__ import annotations

from strandline.histories.sight import Checker, Sight, Violation
from strandline.histories.wire import VOTE, Sent


class OneVote(Checker):
    def __init__(self) -> None:
        self._votes: dict[tuple[int, int], int] = {}
        """By voter and epoch."""

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.api_key != VOTE or sent.pre_vote:
            return
        if not sent.response:
            self._vote(sent.source, sent.epoch, sent.candidate_id)  # a candidate votes for itself
        elif sent.granted:
            self._vote(sent.source, sent.epoch, sent.candidate_id)

    def _vote(self, voter: int, epoch: int, candidate: int) -> None:
        known = self._votes.setdefault((voter, epoch), candidate)
        if known != candidate:
            raise Violation(f"votes for {candidate} in epoch {epoch}, and did for {known}")

    def wiped(self, sight: Sight, node_id: int) -> None:
        """It can't know what it did; that is why a voter must not come back without its disk while votes are cast."""
        self._votes = {key: candidate for key, candidate in self._votes.items() if key[0] != node_id}


class VoteBeforeReply(Checker):
    """When a granted vote, or a candidate's request, leaves a node, the vote is on its device."""

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.api_key != VOTE or sent.pre_vote or (sent.response and not sent.granted):
            return
        saved = sight.elections.get(sent.source)
        if saved is None or saved.epoch < sent.epoch:
            raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}, and its disk knows only {saved}")
        if saved.epoch == sent.epoch:
            voted_id = saved.voted.id if saved.voted is not None else saved.leader_id
            if voted_id != sent.candidate_id:
                raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}; its disk says {saved}")
