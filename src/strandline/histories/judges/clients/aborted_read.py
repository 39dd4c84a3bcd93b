"""G1a aborted read: a value whose send surely failed is not read by any consumer, and is in no log."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory, SendResult


class AbortedRead(ClientJudge):
    name = "aborted-read"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        failed = {send.value: send for send in history.sends.values() if send.result is SendResult.FAILED}
        if not failed:
            return
        for poll, read in history.reads():
            if read.value in failed:
                yield poll.completed_at, f"{poll.who} read {failed[read.value]} at {read.place}, which had failed"
        for place, value in history.stored.items():
            if value in failed:
                yield failed[value].completed_at or 0.0, f"{failed[value]} had failed, and stands at {place}"
