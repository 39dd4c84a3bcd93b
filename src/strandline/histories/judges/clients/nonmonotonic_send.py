"""C2, nonmonotonic-send: what an idempotent producer sends later stands later, in one partition."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.judges.clients import steps
from strandline.histories.record_history import ClientJudge, RecordHistory


class NonmonotonicSend(ClientJudge):
    name = "nonmonotonic-send"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for before, after in steps.writes(history):
            if before.invoked_at != after.invoked_at:
                yield after.completed_at or after.invoked_at, f"{before} was sent before {after} and stands behind it"
