"""D2: a node that knows the leader of an epoch, or leads it, votes for no other node in it."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import QuorumMessage

NOBODY = -1


class NoVoteBesideLeader(QuorumJudge):
    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if not sent.is_vote_granted or sent.pre_vote:
            return
        known = observed.elections.get(sent.source)
        if known is None or known.epoch != sent.epoch or known.leader_id in (NOBODY, sent.candidate_id):
            return
        raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}, which {known.leader_id} leads")
