"""int-poll-skip: within one poll no value of a partition is skipped."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.judges.clients import steps
from strandline.histories.record_history import ClientJudge, RecordHistory


class IntPollSkip(ClientJudge):
    name = "int-poll-skip"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for step in steps.reads(history):
            if step.within_poll and step.by > 1:
                yield step.at, f"{step.who} read {step.after} after {step.before or 'it began'}"
