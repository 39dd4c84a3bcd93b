"""What transactional clients did: which values each transaction had, what they were told of its end, and what readers
of both isolations read.

Always true: every value is sent once by one transaction; what a commit or an abort that failed has done is unknown, but
a transaction whose commit nobody asked for is never committed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.histories.record_history import RecordPosition
from strandline.ids import TopicPartition


class ToldEnd(enum.Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown end"


@dataclass(slots=True)
class ClientTransaction:
    who: str
    number: int
    values: dict[bytes, TopicPartition] = field(default_factory=dict)
    """Each with the partition that it was sent to."""
    sources: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets that it commits for its group."""
    asked_to_commit: bool = False
    told: ToldEnd = ToldEnd.UNKNOWN

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.who}"


class TransactionalRead(NamedTuple):
    who: str
    place: RecordPosition
    value: bytes
    committed_end: int
    """Of its partition, when it was read."""
    at: float


class TransactionHistory:
    def __init__(
        self,
        now: Callable[[], float] = lambda: 0.0,
        committed_end: Callable[[str, int], int] = lambda topic, partition: 0,
    ) -> None:
        """`committed_end` returns how much of a partition is committed now."""
        self.transactions: list[ClientTransaction] = []
        self.reads: dict[str, list[TransactionalRead]] = {}
        """Of read_committed consumers, each from the beginning on, in the order of their polls."""
        self.uncommitted_reads: list[TransactionalRead] = []
        self.final: dict[TopicPartition, list[bytes]] = {}
        """What a read_committed consumer reads at the end, all of it."""
        self._numbers: dict[str, int] = {}
        self._now = now
        self._committed_end = committed_end

    def begin(self, who: str) -> ClientTransaction:
        number = self._numbers[who] = self._numbers.get(who, 0) + 1
        begun = ClientTransaction(who, number)
        self.transactions.append(begun)
        return begun

    def note_read(self, who: str, place: RecordPosition, value: bytes, *, is_committed: bool) -> None:
        read = TransactionalRead(who, place, value, self._committed_end(place.topic, place.partition), self._now())
        if is_committed:
            self.reads.setdefault(who, []).append(read)
        else:
            self.uncommitted_reads.append(read)

    def note_final(self, key: TopicPartition, value: bytes) -> None:
        self.final.setdefault(key, []).append(value)
