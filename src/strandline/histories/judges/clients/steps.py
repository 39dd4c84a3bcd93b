"""How a consumer's reads, and a producer's writes, of one partition follow each other: by index among the values that
are known.

Always true: offsets that hold no value of a producer (markers, what was compacted away) are no skip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.histories.record_history import RecordHistory, RecordPosition, SentRecord
from strandline.ids import TopicPartition


class ReadStep(NamedTuple):
    """From one read of a partition to the next, in one session of a consumer."""

    who: str
    at: float
    before: RecordPosition | None
    """None where the session begins."""
    after: RecordPosition
    within_poll: bool
    by: int
    """So many indexes on; 1 is the next."""


def reads(history: RecordHistory) -> Iterator[ReadStep]:
    order = history.order()
    indexes = {place: index for places in order.values() for index, place in enumerate(places)}
    for session in history.sessions:
        last: dict[TopicPartition, tuple[RecordPosition, int]] = {}
        for number, poll in enumerate(session.polls):
            for read in poll.records:
                place, key = read.place, read.place[:2]
                if place not in indexes:
                    continue  # it was lost since, and that was allowed
                if key in last:
                    before, in_poll = last[key]
                    yield ReadStep(
                        session.who,
                        poll.completed_at,
                        before,
                        place,
                        in_poll == number,
                        indexes[place] - indexes[before],
                    )
                elif key in session.positions:
                    skipped = sum(session.positions[key] <= other.offset < place.offset for other in order[key])
                    by = skipped + 1 if place.offset >= session.positions[key] else 0
                    yield ReadStep(session.who, poll.completed_at, None, place, False, by)
                last[key] = (place, number)


def writes(history: RecordHistory) -> Iterator[tuple[SentRecord, SentRecord]]:
    """Of idempotent producers: two sends to one partition, the earlier of which stands behind the later one."""
    stored: dict[TopicPartition, list[tuple[RecordPosition, SentRecord]]] = {}
    for place, value in history.stored.items():
        send = history.sends.get(value)
        if send is not None and send.idempotent:
            stored.setdefault(place[:2], []).append((place, send))
    for found in stored.values():
        newest: dict[str, SentRecord] = {}
        for _, send in sorted(found, key=lambda pair: pair[0]):
            before = newest.get(send.who)
            if before is not None and send.number < before.number:
                yield send, before
            else:
                newest[send.who] = send
