"""unseen: a consumer that read from the beginning to the end has seen everything that is stored."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class Unseen(ClientJudge):
    name = "unseen"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for session in history.sessions:
            if not session.is_caught_up:
                continue
            seen = {read.place for poll in session.polls for read in poll.records}
            at = session.polls[-1].completed_at if session.polls else 0.0
            for place, value in history.stored.items():
                if place not in seen:
                    yield at, f"{session.who} did not see {value!r}, {place}"
