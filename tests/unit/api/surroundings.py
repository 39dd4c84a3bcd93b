"""What partitions need of a node, with a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from strandline.metadata.image import MetadataImage
from strandline.metadata.incarnations import Incarnation, incarnation
from strandline.replica.followers import UNKNOWN
from strandline.replica.isr_state import ProposedIsr
from strandline.replica.partition import Partition


class Event(NamedTuple):
    kind: str
    partition: str
    reason: str


class Surroundings:
    """Of node 1. What its partitions wish for and tell of is kept for the test to look at."""

    node_id = 1
    broker_epoch = 1
    lag_time_max_s = 30.0

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self.time = 1000.0
        self.wishes: list[ProposedIsr] = []
        self.events: list[Event] = []
        self.flushes_due: list[Partition] = []

    def now(self) -> float:
        return self.time

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self._image().brokers.get(broker_id)
        return broker is not None and broker.active and broker_epoch in (UNKNOWN, broker.epoch)

    def is_alive(self, broker_id: int) -> bool:
        broker = self._image().brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        return incarnation(self._image(), broker_id, broker_epoch)

    def flush_due(self, partition: Partition) -> None:
        self.flushes_due.append(partition)

    def propose_isr(self, partition: Partition, wish: ProposedIsr) -> None:
        self.wishes.append(wish)

    def note(self, kind: str, partition: Partition, reason: str, **facts: Any) -> None:
        self.events.append(Event(kind, str(partition), reason))
