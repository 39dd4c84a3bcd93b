"""int-nonmonotonic-poll: within one poll the values of a partition come in their order, each once."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.judges.clients import steps
from strandline.histories.record_history import ClientJudge, RecordHistory


class IntNonmonotonicPoll(ClientJudge):
    name = "int-nonmonotonic-poll"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for step in steps.reads(history):
            if step.within_poll and step.by <= 0:
                yield step.at, f"{step.who} read {step.after} after {step.before or 'it began'}"
