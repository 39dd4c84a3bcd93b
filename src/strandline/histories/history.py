"""What clients sent, were told and read, and what that must mean.

Always true: every value is sent once by one client, so a value says who sent it and when.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class History:
    sent: dict[bytes, None] = field(default_factory=dict)
    acknowledged: dict[bytes, Place] = field(default_factory=dict)
    """Where the broker said the value stands."""
    read: dict[Place, bytes] = field(default_factory=dict)
    """What some consumer read, at any time."""
    stored: dict[Place, bytes] = field(default_factory=dict)
    """What is there at the end."""
    problems: list[str] = field(default_factory=list)

    def note_read(self, place: Place, value: bytes) -> None:
        before = self.read.setdefault(place, value)
        if before != value:
            self.problems.append(f"inconsistent-offsets: {place} was read as {before!r} and as {value!r}")

    def judge(self) -> list[str]:
        """Everything that must not have happened."""
        found = list(self.problems)
        found += self._lost()
        found += self._doubled()
        found += self._unrepeatable()
        found += self._reordered()
        return found

    def _lost(self) -> list[str]:
        return [
            f"lost-write: {value!r} was acknowledged at {place}, where {self.stored.get(place)!r} stands"
            for value, place in self.acknowledged.items()
            if self.stored.get(place) != value
        ]

    def _doubled(self) -> list[str]:
        places: dict[bytes, Place] = {}
        found = []
        for place, value in self.stored.items():
            if value in places:
                found.append(f"duplicate: {value!r} stands at {places[value]} and at {place}")
            places[value] = place
            if value not in self.sent:
                found.append(f"invented: {value!r} at {place} was never sent")
        return found

    def _unrepeatable(self) -> list[str]:
        return [
            f"unrepeatable read: {value!r} was read at {place}, where {self.stored.get(place)!r} stands at the end"
            for place, value in self.read.items()
            if self.stored.get(place) != value
        ]

    def _reordered(self) -> list[str]:
        """A producer's records of one partition stand in the order in which it sent them."""
        last: dict[tuple[bytes, int], int] = {}
        found = []
        for (partition, offset), value in sorted(self.stored.items()):
            producer, _, number = value.rpartition(b"-")
            if int(number) < last.get((producer, partition), -1):
                found.append(f"nonmonotonic-send: {value!r} at {partition}, {offset} comes after a later one")
            last[producer, partition] = int(number)
        return found
