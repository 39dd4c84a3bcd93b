"""nonmonotonic-poll: from one poll to the next of an assigned consumer no value comes again."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.judges.clients import steps
from strandline.histories.record_history import ClientJudge, RecordHistory


class NonmonotonicPoll(ClientJudge):
    name = "nonmonotonic-poll"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for step in steps.reads(history):
            if not step.within_poll and step.by <= 0:
                yield step.at, f"{step.who} read {step.after} after {step.before or 'it began'}"
