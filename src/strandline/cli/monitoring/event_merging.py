"""Merging of the events of several nodes into one timeline.

Always true: an event that every node derives from the same metadata appears once, from the node that reported it first; an event
of a node itself is that node's. Events are ordered by wall-clock time, which is as exact as the nodes' clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

OF_ONE_NODE = frozenset(
    {
        "truncated",
        "became leader",
        "became follower",
        "dir failed",
        "corrupt batch",
        "batch repaired",
        "compacted",
        "transactions loaded",
        "transaction aborted",
        "producer fenced",
        "marker refused",
    }
)
"""Kinds of events of a node itself; the others are of the cluster."""
_IDENTITY = ("leader_epoch", "partition_epoch", "broker", "broker_epoch", "topic_id", "controller", "epoch")
SEEN_MAX = 200_000


EventFact = int | str | bool | list[int] | None
"""A fact about an event: an id, an epoch, an offset, a name, or a list of replicas."""
Identity = tuple[EventFact, ...]


class ReportedNodeEvent(TypedDict):
    """An event as its node reports it in `/events`."""

    wall_ms: int
    sequence: int
    kind: str
    reason: str
    topic: str | None
    partition: int | None
    facts: dict[str, EventFact]


class EventsReport(TypedDict):
    """A node's answer to `/events`."""

    node_id: int
    incarnation_id: str
    last: int
    events: list[ReportedNodeEvent]


class NodeEvent(NamedTuple):
    """An event, and the node that reported it."""

    wall_ms: int
    node_id: int
    sequence: int
    kind: str
    reason: str
    topic: str | None
    partition: int | None
    facts: Mapping[str, EventFact]

    @property
    def identity(self) -> Identity:
        """Equal for two reports of the same change."""
        if self.kind in OF_ONE_NODE:
            return (self.kind, self.topic, self.partition, self.node_id, self.sequence, self.wall_ms)
        return (self.kind, self.topic, self.partition, *(self.facts.get(name) for name in _IDENTITY))

    def as_json(self) -> dict[str, object]:
        return self._asdict() | {"facts": dict(self.facts)}


def events_in(answer: EventsReport) -> list[NodeEvent]:
    """The events in a node's answer to `/events`."""
    return [
        NodeEvent(
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


class EventMerger:
    """Events of several nodes, without duplicates, of one topic if it is named."""

    def __init__(self, topic: str | None = None, since_ms: int = 0) -> None:
        self._topic = topic
        self._since_ms = since_ms
        self._seen: dict[Identity, None] = {}

    def add(self, events: Iterable[NodeEvent]) -> list[NodeEvent]:
        """The new events among these, in order. An event without a topic belongs to every topic's timeline."""
        new = []
        # Within a millisecond, events of the cluster come before those of a node.
        for event in sorted(events, key=lambda event: (event.wall_ms, event.kind in OF_ONE_NODE, *event[1:3])):
            if event.identity in self._seen:
                continue
            self._seen[event.identity] = None
            if event.wall_ms >= self._since_ms and (self._topic is None or event.topic in (None, self._topic)):
                new.append(event)
        while len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        return new
