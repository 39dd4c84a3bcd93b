"""The events of several nodes as one story.

Always true: what every node reads off the same metadata is told once, by whoever was first; what a node did itself is told by that
node. Order is by wall time, which is as good as the nodes' clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

OF_ONE_NODE = frozenset(
    {"truncated", "became leader", "became follower", "dir failed", "corrupt batch", "batch repaired", "compacted"}
)
"""Kinds that a node notes of itself; the others are of the cluster."""
_IDENTITY = ("leader_epoch", "partition_epoch", "broker", "broker_epoch", "topic_id", "controller", "epoch")
SEEN_MAX = 200_000


class Told(NamedTuple):
    """One event, and which node told it."""

    wall_ms: int
    node_id: int
    sequence: int
    kind: str
    reason: str
    topic: str | None
    partition: int | None
    facts: Mapping[str, Any]

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for two tellings of the same change."""
        if self.kind in OF_ONE_NODE:
            return (self.kind, self.topic, self.partition, self.node_id, self.sequence, self.wall_ms)
        return (self.kind, self.topic, self.partition, *(self.facts.get(name) for name in _IDENTITY))

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"facts": dict(self.facts)}


def told(answer: Mapping[str, Any]) -> list[Told]:
    """From a node's `/events`."""
    return [
        Told(
            event["wall_ms"],
            answer["node_id"],
            event["sequence"],
            event["kind"],
            event["reason"],
            event["topic"],
            event["partition"],
            event["facts"],
        )
        for event in answer["events"]
    ]


class Story:
    """What was told before is not told again."""

    def __init__(self, topic: str | None = None, since_ms: int = 0) -> None:
        self._topic = topic
        self._since_ms = since_ms
        self._seen: dict[tuple[Any, ...], None] = {}

    def add(self, events: Iterable[Told]) -> list[Told]:
        """The news among these, in order. An event of no topic belongs to every topic's story."""
        news = []
        # Within a millisecond, what the cluster decided comes before what a node made of it.
        for event in sorted(events, key=lambda event: (event.wall_ms, event.kind in OF_ONE_NODE, *event[1:3])):
            if event.identity in self._seen:
                continue
            self._seen[event.identity] = None
            if event.wall_ms >= self._since_ms and (self._topic is None or event.topic in (None, self._topic)):
                news.append(event)
        while len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        return news
