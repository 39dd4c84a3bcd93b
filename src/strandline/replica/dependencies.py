"""What a partition depends on: the node that it lives on, and those that it notifies.

Always true: a partition calls them, and never waits for what they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from strandline.metadata.incarnations import Incarnation
from strandline.replica.isr_state import ProposedIsr

if TYPE_CHECKING:
    from strandline.replica.partition import Partition


class WaitingReader(Protocol):
    """A Fetch of a consumer that waits for more."""

    def wake(self, partition: Partition, new_bytes: int) -> None:
        """`new_bytes` more can be read; negative if the partition is gone."""


class Watcher(Protocol):
    """A follower's fetch session in which this partition is named."""

    def notify(self, *, urgent: bool) -> None:
        """The log grew, or its follower must get an error: urgent. The watermark or the log start moved: that can wait."""

    def brokers_changed(self) -> None:
        """The metadata has another set of brokers: a position that did not count yet may count now."""


class PartitionDependencies(Protocol):
    """What a partition needs of its node."""

    @property
    def node_id(self) -> int: ...

    @property
    def broker_epoch(self) -> int: ...

    @property
    def lag_time_max_s(self) -> float: ...

    def now(self) -> float:
        """On the monotonic clock."""

    # The cluster's brokers, as this node's metadata has them

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """May join an ISR: unfenced, not stopping, and this is its newest incarnation (-1: it does not say)."""

    def is_alive(self, broker_id: int) -> bool: ...

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        """Which incarnation of that broker says this epoch."""

    # What it has the node do

    def flush_due(self, partition: Partition) -> None: ...

    def propose_isr(self, partition: Partition, proposal: ProposedIsr) -> None:
        """Ask the controller for another ISR; `Partition.isr_answered` is called with what it says."""

    def note(self, kind: str, partition: Partition, reason: str, **facts: object) -> None:
        """Record an event of this partition for operators."""
