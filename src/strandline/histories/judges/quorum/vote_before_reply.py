"""D1: when a granted vote, or a candidate's request, leaves a node, the vote is on its device."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import VOTE, QuorumMessage


class VoteBeforeReply(QuorumJudge):
    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != VOTE or sent.pre_vote or (sent.response and not sent.granted):
            return
        saved = observed.elections.get(sent.source)
        if saved is None or saved.epoch < sent.epoch:
            raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}, and its disk knows only {saved}")
        if saved.epoch == sent.epoch:
            voted_id = saved.voted.id if saved.voted is not None else saved.leader_id
            if voted_id != sent.candidate_id:
                raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}; its disk says {saved}")
