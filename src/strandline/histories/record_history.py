"""What clients sent to and read from replicated topics: one operation after the other, each with its client, times and
result.

Always true: every value is sent once by one producer, so a value says who sent it and when. A send is acknowledged,
surely failed, or its outcome is unknown. What a consumer reads between two `note_begin` is one session. What a fault of
the history was allowed to take is excused from the moment on in which it took it. What all that must mean is judged at
the end, by the judges of clients.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.ids import TopicPartition


class RecordPosition(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} at {self.offset}"


class SendResult(enum.Enum):
    OK = "acknowledged"
    FAILED = "surely not written"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class SentRecord:
    who: str
    number: int
    """Of this producer's sends."""
    value: bytes
    topic: str
    partition: int
    by_all: bool
    """acks=all; what only one replica acknowledged may be lost with it."""
    idempotent: bool
    invoked_at: float
    completed_at: float | None = None
    result: SendResult = SendResult.UNKNOWN
    place: RecordPosition | None = None
    """Where the leader said that it stands."""
    committed_end: int | None = None
    """Of its partition, when it was acknowledged."""
    is_excused: bool = False

    def __str__(self) -> str:
        return f"{self.value!r} of {self.who}"


class ReadRecord(NamedTuple):
    place: RecordPosition
    value: bytes
    committed_end: int | None
    """Of its partition, when it was read."""


class RecordedPoll(NamedTuple):
    who: str
    session: int
    losses: int
    """So many there had been."""
    invoked_at: float
    completed_at: float
    records: tuple[ReadRecord, ...]


@dataclass(slots=True)
class ReadSession:
    who: str
    positions: dict[TopicPartition, int]
    is_caught_up: bool = False
    """It has come to the end of everything."""
    polls: list[RecordedPoll] = field(default_factory=list)


class ReportedEnd(NamedTuple):
    """Where a partition ends, as a client was answered."""

    who: str
    key: TopicPartition
    offset: int
    leader_epoch: int
    invoked_at: float
    completed_at: float

    def __str__(self) -> str:
        topic, partition = self.key
        what = f"{topic}-{partition} ends at {self.offset} in leader epoch {self.leader_epoch}"
        return f"{self.who} got the answer at {self.completed_at:.3f} s that {what}"


class ExcusedLoss(NamedTuple):
    """From this offset on, allowed."""

    topic: str
    partition: int
    offset: int
    at: float = 0.0


class RecordHistory:
    def __init__(
        self, now: Callable[[], float] = lambda: 0.0, committed_end: Callable[[str, int], int] | None = None
    ) -> None:
        """`committed_end` returns how much of a partition is committed now."""
        self.sends: dict[bytes, SentRecord] = {}
        """By value."""
        self.sessions: list[ReadSession] = []
        self.stored: dict[RecordPosition, bytes] = {}
        """What is there at the end, all of it."""
        self.ends: list[ReportedEnd] = []
        self.lost: list[ExcusedLoss] = []
        self.operations = 0
        self._now = now
        self._committed_end = committed_end
        self._sent_by: dict[str, int] = {}
        self._open: dict[str, ReadSession] = {}
        """By consumer: its session now."""

    # What happens

    def note_sent(self, who: str, value: bytes, topic: str, partition: int, *, by_all: bool, idempotent: bool) -> None:
        assert value not in self.sends, f"{value!r} is sent twice"
        number = self._sent_by[who] = self._sent_by.get(who, -1) + 1
        self.operations += 1
        self.sends[value] = SentRecord(who, number, value, topic, partition, by_all, idempotent, self._now())

    def note_acknowledged(self, value: bytes, place: RecordPosition) -> None:
        send = self.sends[value]
        send.completed_at, send.result, send.place = self._now(), SendResult.OK, place
        send.committed_end = self._committed(place)

    def note_failed(self, value: bytes, *, surely: bool = False) -> None:
        """It ended in an error. `surely`: it can't have been written, because it never left, or was refused at its
        only attempt."""
        send = self.sends[value]
        send.completed_at = self._now()
        if surely:
            send.result = SendResult.FAILED

    def note_begin(self, who: str, positions: Mapping[TopicPartition, int]) -> None:
        """A consumer was assigned these partitions and will read them from there on."""
        session = self._open[who] = ReadSession(who, dict(positions))
        self.sessions.append(session)

    def note_poll(
        self, who: str, records: Sequence[tuple[RecordPosition, bytes]], invoked_at: float | None = None
    ) -> None:
        """What one poll gave, in its order."""
        self.operations += 1
        if not records:
            return
        now = self._now()
        reads = tuple(ReadRecord(place, value, self._committed(place)) for place, value in records)
        session = self._open[who]
        session.polls.append(
            RecordedPoll(who, len(self.sessions), len(self.lost), now if invoked_at is None else invoked_at, now, reads)
        )

    def note_caught_up(self, who: str) -> None:
        """It began at the beginning of everything, and has read to the end."""
        self._open[who].is_caught_up = True

    def note_end(
        self, who: str, topic: str, partition: int, offset: int, leader_epoch: int, *, invoked_at: float
    ) -> None:
        """A client that asked for the end of a partition at `invoked_at` got the answer now."""
        self.operations += 1
        self.ends.append(ReportedEnd(who, (topic, partition), offset, leader_epoch, invoked_at, self._now()))

    def note_stored(self, place: RecordPosition, value: bytes) -> None:
        self.stored[place] = value

    def note_loss(self, topic: str, partition: int, offset: int) -> None:
        """What stands there from `offset` on is gone, and so may be what is still to be acknowledged of what was
        sent there."""
        self.lost.append(ExcusedLoss(topic, partition, offset, self._now()))
        for send in self.sends.values():
            if (send.topic, send.partition) == (topic, partition) and (
                send.place is None or send.place.offset >= offset
            ):
                send.is_excused = True

    def _committed(self, place: RecordPosition) -> int | None:
        return None if self._committed_end is None else self._committed_end(place.topic, place.partition)

    # What is known of it

    @property
    def acknowledged(self) -> dict[bytes, RecordPosition]:
        """With acks=all, and not excused: where the leader said that the value stands."""
        return {send.value: send.place for send in self.promised()}  # type: ignore[misc]

    def promised(self) -> Iterator[SentRecord]:
        """The sends that must be there."""
        for send in self.sends.values():
            if send.result is SendResult.OK and send.by_all and not send.is_excused:
                yield send

    def reads(self) -> Iterator[tuple[RecordedPoll, ReadRecord]]:
        """All that was read and must still be there, in the order in which each consumer read it."""
        for session in self.sessions:
            for poll in session.polls:
                for read in poll.records:
                    if not self._is_lost(read.place, poll.losses):
                        yield poll, read

    def _is_lost(self, place: RecordPosition, losses: int) -> bool:
        """Of what was read before so many losses: whether a later one took it."""
        return len(self.lost) > losses and any(
            (lost.topic, lost.partition) == place[:2] and place.offset >= lost.offset for lost in self.lost[losses:]
        )

    def order(self) -> dict[TopicPartition, list[RecordPosition]]:
        """All places that are known to hold a value, by partition, the lowest first."""
        places = {*self.stored, *(read.place for _, read in self.reads())}
        order: dict[TopicPartition, list[RecordPosition]] = {}
        for place in sorted(places):
            order.setdefault(place[:2], []).append(place)
        return order


class ClientJudge:
    """One anomaly, by the name that Jepsen's kafka workload gives it."""

    name: str

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        """Each time it happened: the moment, and what."""
        raise NotImplementedError
