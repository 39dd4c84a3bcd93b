"""What can be seen of a node's journal: an `Events` as it is, to be read only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from strandline.ids import Uuid

if TYPE_CHECKING:
    from strandline.node.events import Event


class ObservedEvents(Protocol):
    @property
    def incarnation_id(self) -> Uuid:
        """Another one in each run of the node: numbers begin anew with it."""

    @property
    def last(self) -> int:
        """The number of the newest event."""

    @property
    def counts(self) -> Mapping[str, int]:
        """By kind, since the node started."""

    @property
    def isr_shrinks(self) -> int:
        """Of partitions that this node led; so are `isr_expands`."""

    @property
    def isr_expands(self) -> int: ...

    def since(self, sequence: int, events_max: int = ...) -> Sequence[Event]:
        """The oldest of what came after that number."""

    async def wait(self, sequence: int, timeout_s: float) -> None:
        """Return when there are events after that number, or when the time is over."""
