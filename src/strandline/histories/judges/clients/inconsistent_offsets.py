"""inconsistent-offsets: no offset of a partition has more than one value, in whatever was acknowledged, read or is
stored."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory, RecordPosition


class InconsistentOffsets(ClientJudge):
    name = "inconsistent-offsets"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        known: dict[RecordPosition, tuple[bytes, str]] = {
            place: (value, "stored") for place, value in history.stored.items()
        }
        found = [
            (send.completed_at or 0.0, send.place, send.value, f"acknowledged to {send.who}")
            for send in history.promised()
            if send.place is not None
        ]
        found += [(poll.completed_at, read.place, read.value, f"read by {poll.who}") for poll, read in history.reads()]
        for at, place, value, how in found:
            before, by = known.setdefault(place, (value, how))
            if before != value:
                yield at, f"{place} is {before!r} as {by}, and {value!r} as {how}"
