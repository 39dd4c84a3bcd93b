"""What producers were told and consumers read of replicated topics, and what that must mean (Jepsen's names for what is wrong).

Always true: every value is sent once by one producer, so a value says who sent it and when; what a fault of the scenario was
allowed to take is excused from the moment on in which it took it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} at {self.offset}"


@dataclass(slots=True)
class RecordHistory:
    sent: dict[bytes, None] = field(default_factory=dict)
    acknowledged: dict[bytes, Place] = field(default_factory=dict)
    """With acks=all: where the leader said that the value stands."""
    acknowledged_by_one: dict[bytes, Place] = field(default_factory=dict)
    """With acks=1: it may be lost with its leader."""
    read: dict[Place, bytes] = field(default_factory=dict)
    """What some consumer read, at any time."""
    stored: dict[Place, bytes] = field(default_factory=dict)
    """What is there at the end."""
    lost: list[tuple[str, int, int]] = field(default_factory=list)
    """Topic, partition and from which offset on, of each loss that was allowed."""
    problems: list[str] = field(default_factory=list)
    _excused: set[bytes] = field(default_factory=set)

    # What happens

    def note_acknowledged(self, value: bytes, place: Place, *, by_all: bool) -> None:
        if not by_all:
            self.acknowledged_by_one[value] = place
        elif value not in self._excused:
            self.acknowledged[value] = place
            self._note_value(place, value, "acknowledged")

    def note_read(self, place: Place, value: bytes) -> None:
        self._note_value(place, value, "read")
        self.read[place] = value

    def _note_value(self, place: Place, value: bytes, how: str) -> None:
        before = self.read.get(place, value)
        if before != value:
            self.problems.append(f"inconsistent-offsets: {place} was read as {before!r}, and {how} as {value!r}")

    def note_loss(self, topic: str, partition: int, offset: int) -> None:
        """What stands there from `offset` on is gone, and so may be what is still to be acknowledged of what was sent."""
        self.lost.append((topic, partition, offset))
        gone = {v for v, p in self.acknowledged.items() if p[:2] == (topic, partition) and p.offset >= offset}
        self._excused |= gone | (self.sent.keys() - self.acknowledged.keys())
        self.acknowledged = {value: place for value, place in self.acknowledged.items() if value not in gone}
        self.read = {
            place: value
            for place, value in self.read.items()
            if place[:2] != (topic, partition) or place.offset < offset
        }

    # What it means

    def judge(self, seen_by: Mapping[str, Collection[Place]], once: Collection[bytes]) -> list[str]:
        """Everything that must not have happened. `seen_by`: what each consumer has seen that began at the beginning and was
        never told of a loss; `once`: the idempotent producers."""
        found = list(self.problems)
        found += [
            f"lost-write: {value!r} was acknowledged at {place}, where {self.stored.get(place)!r} stands"
            for value, place in self.acknowledged.items()
            if self.stored.get(place) != value
        ]
        found += [
            f"unrepeatable read: {value!r} was read at {place}, where {self.stored.get(place)!r} stands at the end"
            for place, value in self.read.items()
            if self.stored.get(place) != value
        ]
        for consumer, seen in seen_by.items():
            found += [f"unseen: {consumer} did not see {place}" for place in self.stored if place not in seen]
        return found + self._doubled(once) + self._reordered(once)

    def _doubled(self, once: Collection[bytes]) -> list[str]:
        places: dict[bytes, Place] = {}
        found = []
        for place, value in self.stored.items():
            if value in places and _producer(value) in once:
                found.append(f"duplicate: {value!r} stands at {places[value]} and at {place}")
            places[value] = place
            if value not in self.sent:
                found.append(f"invented: {value!r} at {place} was never sent")
        return found

    def _reordered(self, once: Collection[bytes]) -> list[str]:
        """An idempotent producer's records of one partition stand in the order in which it sent them."""
        last: dict[tuple[bytes, str, int], int] = {}
        found = []
        for place, value in sorted(self.stored.items()):
            producer, key = _producer(value), (_producer(value), place.topic, place.partition)
            number = int(value.rpartition(b"-")[2])
            if producer in once and number < last.get(key, -1):
                found.append(f"nonmonotonic-send: {value!r} at {place} comes after a later one")
            last[key] = number
        return found


def _producer(value: bytes) -> bytes:
    return value.rpartition(b"-")[0]
