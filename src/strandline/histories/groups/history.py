"""What the members of a group were assigned, which records they got, and what they committed: each holding of a
partition, and each record in it, in order.

A holding is what lies between `on_assigned` and `on_revoked` or `on_lost` in one life of a member. What that must mean
is judged at the end, by the judges of groups.

Always true: a record is noted before its member does anything else, so it is never committed before it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from strandline.ids import TopicPartition


@dataclass(slots=True)
class Holding:
    who: str
    life: int
    key: TopicPartition
    generation: int
    """Or member epoch, when it was assigned."""
    since: float
    until: float | None = None
    """None: it has it still, or died with it."""
    given: list[tuple[int, bytes]] = field(default_factory=list)
    """Offsets and values, as polls gave them."""

    def __str__(self) -> str:
        return f"{self.who} ({self.life}) with {self.key[0]}-{self.key[1]} of generation {self.generation}"


class GroupHistory:
    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.holdings: list[Holding] = []
        self.committed: dict[TopicPartition, int] = {}
        """What was acknowledged to members, the greatest."""
        self.final: dict[TopicPartition, int] = {}
        """What the group has committed at the end."""
        self._now = now
        self._open: dict[tuple[str, int], dict[TopicPartition, Holding]] = {}
        """By member and life."""

    def note_assigned(self, who: str, life: int, keys: Iterable[TopicPartition], generation: int) -> None:
        mine = self._open.setdefault((who, life), {})
        for key in keys:
            holding = mine[key] = Holding(who, life, key, generation, self._now())
            self.holdings.append(holding)

    def note_gone(self, who: str, life: int, keys: Iterable[TopicPartition]) -> None:
        """Revoked or lost."""
        mine = self._open.get((who, life), {})
        for key in keys:
            holding = mine.pop(key, None)
            if holding is not None:
                holding.until = self._now()

    def given_to(self, key: TopicPartition) -> int:
        """Where the records end that the newest owner of a partition was given; of one that was given none, those
        before it."""
        for holding in reversed(self.holdings):
            if holding.key == key and holding.given:
                return holding.given[-1][0] + 1
        return 0

    def note_given(self, who: str, life: int, key: TopicPartition, offset: int, value: bytes) -> bool:
        """False if the member does not hold the partition."""
        holding = self._open.get((who, life), {}).get(key)
        if holding is None:
            return False
        holding.given.append((offset, value))
        return True

    def note_committed(self, offsets: dict[TopicPartition, int]) -> None:
        for key, offset in offsets.items():
            self.committed[key] = max(offset, self.committed.get(key, 0))

    def held(self, who: str, life: int) -> list[TopicPartition]:
        return sorted(self._open.get((who, life), {}))
