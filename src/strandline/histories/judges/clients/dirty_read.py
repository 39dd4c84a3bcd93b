"""A14 dirty read: a consumer reads only what is committed when it reads it."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class DirtyRead(ClientJudge):
    name = "dirty-read"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for poll, read in history.reads():
            if read.committed_end is not None and read.place.offset >= read.committed_end:
                yield (
                    poll.completed_at,
                    (f"{poll.who} read {read.value!r} at {read.place}, and {read.committed_end} was committed"),
                )
