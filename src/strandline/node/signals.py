"""Signals: how a part of a node reports something to parts that are built after it.

A node is built bottom-up (`assembly.py`): each part gets what it needs when it is made. Sometimes a part must reach one
that is built later, because that one needs it: a replica changes its role, and the fetchers, which need the replicas,
follow. Then a signal is built before both. The first part calls it like a function; who subscribes is said in
`assembly.py` alone.

Always true: subscribers are called in the order in which they subscribed, within the call; what one of them raises is
raised to the caller. All of them have subscribed before the node starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, ParamSpec

from strandline.ids import TopicPartition
from strandline.log.errors import CorruptBatch
from strandline.metadata.image import TopicImage
from strandline.replica.partition import Partition
from strandline.transactions.markers import EndMarker

if TYPE_CHECKING:
    from strandline.node.log_dirs import LogDir

P = ParamSpec("P")


class Signal(Generic[P]):
    __slots__ = ("_subscribers",)

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, None]] = []

    def subscribe(self, *subscribers: Callable[P, None]) -> None:
        self._subscribers += subscribers

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for subscriber in self._subscribers:
            subscriber(*args, **kwargs)


class AsyncSignal(Generic[P]):
    """A signal whose caller waits until each subscriber is done."""

    __slots__ = ("_subscribers",)

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, Awaitable[None]]] = []

    def subscribe(self, *subscribers: Callable[P, Awaitable[None]]) -> None:
        self._subscribers += subscribers

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for subscriber in self._subscribers:
            await subscriber(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class PeerSignals:
    """Connections that this node opens to others."""

    opened: Signal[int] = field(default_factory=Signal)
    """To this node, for whatever purpose."""
    closed: Signal[int, str] = field(default_factory=Signal)
    """To this node and for this purpose; not the one on which a leader is followed."""
    leader_lost: Signal[int, str] = field(default_factory=Signal)
    """The one on which a leader is followed closed: the broker may be gone, and the quorum is not concerned."""


@dataclass(frozen=True, slots=True)
class QuorumSignals:
    """Leadership in the quorum, as this node learns of it."""

    activated: AsyncSignal[int] = field(default_factory=AsyncSignal)
    """This node becomes the active controller in this epoch; what subscribers decide comes before other decisions."""
    deactivated: Signal[()] = field(default_factory=Signal)
    """This node is not the active controller any more."""
    leader_changed: Signal[()] = field(default_factory=Signal)


@dataclass(frozen=True, slots=True)
class MarkerSignals:
    """What has become of the markers that this node's transaction coordinator sends."""

    marked: Signal[EndMarker, Collection[TopicPartition]] = field(default_factory=Signal)
    """These partitions have the marker, or are no more."""
    refused: Signal[EndMarker] = field(default_factory=Signal)
    """A leader knows a newer epoch."""


@dataclass(frozen=True, slots=True)
class ReplicaSignals:
    """What happens to the replicas of this node."""

    role_changed: Signal[Partition] = field(default_factory=Signal)
    """A partition has another leader, or another leader epoch, or is no longer here."""
    hosted: Signal[Partition, LogDir] = field(default_factory=Signal)
    """A partition is open here now."""
    unopened: Signal[TopicImage, int, LogDir] = field(default_factory=Signal)
    """A partition is in this log dir, which failed before it was open."""
    dropping: AsyncSignal[list[Partition]] = field(default_factory=AsyncSignal)
    """Partitions are no longer here: what writes into their directories has ended when this returns."""
    damaged: Signal[Partition, CorruptBatch] = field(default_factory=Signal)
    """A stretch of a log was found damaged when it was opened or compacted."""
    truncated: Signal[Partition] = field(default_factory=Signal)
    """The end of a log was cut."""
    dir_failed: Signal[LogDir] = field(default_factory=Signal)
