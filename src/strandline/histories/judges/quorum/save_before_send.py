"""D1: no request speaks of an epoch that is not on the sender's disk; a pre-vote may."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import QuorumMessage


class SaveBeforeSend(QuorumJudge):
    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.response or sent.pre_vote or sent.epoch <= 0:
            return
        saved = observed.elections.get(sent.source)
        if saved is None or saved.epoch < sent.epoch:
            raise Violation(f"sends API {sent.api_key} in epoch {sent.epoch}, and its disk knows only {saved}")
