"""A3, A4 early ack: with acks=all a value is acknowledged only once it is committed."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class EarlyAck(ClientJudge):
    name = "early-ack"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for send in history.promised():
            if send.place is not None and send.committed_end is not None and send.place.offset >= send.committed_end:
                yield (
                    send.completed_at or 0.0,
                    (
                        f"{send} was acknowledged before it was committed: {send.place}, and {send.committed_end} was committed"
                    ),
                )
