"""D2: who knows the leader of an epoch, or leads it, votes for nobody else in it."""

from __future__ import annotations

from strandline.histories.sight import Judge, Sight, Violation
from strandline.histories.wire import Sent

NOBODY = -1


class NoVoteBesideLeader(Judge):
    def sent(self, sight: Sight, sent: Sent) -> None:
        if not sent.is_vote_granted or sent.pre_vote:
            return
        known = sight.elections.get(sent.source)
        if known is None or known.epoch != sent.epoch or known.leader_id in (NOBODY, sent.candidate_id):
            return
        raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}, which {known.leader_id} leads")
