"""What the partitions of a node need of it: who is alive, the clock, a flush, the way to the controller, the events.

Always true: a partition reaches the node through this and nothing else; the brokers are those of the image that is
being applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.metadata.image import MetadataImage
from strandline.metadata.incarnations import Incarnation, incarnation
from strandline.replica.followers import UNKNOWN
from strandline.replica.isr_state import ProposedIsr
from strandline.replica.partition import Partition

Note = Callable[..., None]
"""Kind, reason, topic, partition and facts of an event."""


class NodePartitionDependencies:
    def __init__(
        self,
        node_id: int,
        lag_time_max_s: float,
        *,
        broker_epoch: Callable[[], int],
        propose_isr: Callable[[Partition, ProposedIsr], None],
        flush_due: Callable[[Partition], None],
        truncated: Callable[[Partition], None],
        note: Note,
    ) -> None:
        self.node_id = node_id
        self.lag_time_max_s = lag_time_max_s
        self.image = MetadataImage()
        self.now = asyncio.get_running_loop().time
        self.propose_isr = propose_isr
        self.flush_due = flush_due
        self._broker_epoch = broker_epoch
        self._truncated = truncated
        self._note = note

    def use(self, image: MetadataImage) -> None:
        """This image is applied from here on."""
        self.image = image

    @property
    def broker_epoch(self) -> int:
        return self._broker_epoch()

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active and broker_epoch in (UNKNOWN, broker.epoch)

    def is_alive(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        broker = self.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == broker_epoch:
            return Incarnation.CURRENT  # as nearly always, and without another call
        return incarnation(self.image, broker_id, broker_epoch)

    def note(self, kind: str, partition: Partition, reason: str, **facts: object) -> None:
        if kind == "truncated":
            self._truncated(partition)
        self._note(kind, reason, topic=partition.topic, partition=partition.index, **facts)
