"""D1: no request speaks of an epoch that is not on the sender's disk; a pre-vote may."""

from __future__ import annotations

from strandline.histories.sight import Judge, Sight, Violation
from strandline.histories.wire import Sent


class SaveBeforeSend(Judge):
    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.response or sent.pre_vote or sent.epoch <= 0:
            return
        saved = sight.elections.get(sent.source)
        if saved is None or saved.epoch < sent.epoch:
            raise Violation(f"sends API {sent.api_key} in epoch {sent.epoch}, and its disk knows only {saved}")
