"""The journal of one node: what happened to its replicas, its leaders and its cluster, when, and why.

Always true: it holds the newest events, no more than its bound; numbers rise by one and are never used twice in one run
of the node; events are in the node's log too, unless there are too many of them at once, and then it says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from strandline.ids import Uuid
from strandline.metadata.changes import MetadataChange, changes
from strandline.metadata.image import MetadataImage
from strandline.node.logger import Logger
from strandline.ports import Clock

EVENTS_MAX = 10_000
LOGGED_MAX, LOGGED_WINDOW_S = 50, 1.0
"""A broker that is gone changes thousands of partitions at once, and the brokers that lead them next have no time to
write lines."""
CHANGES_AT_ONCE_MAX = 40
"""That are noted at once: so many take about half a millisecond."""
KINDS = frozenset(
    {
        "leader elected",
        "leader lost",
        "isr expanded",
        "isr shrunk",
        "elr changed",
        "unclean election",
        "fenced",
        "unfenced",
        "controlled shutdown",
        "registered",
        "truncated",
        "became leader",
        "became follower",
        "dir failed",
        "corrupt batch",
        "batch repaired",
        "compacted",
        "reassignment started",
        "reassignment finished",
        "topic created",
        "topic deleted",
        "controller active",
        "transactions loaded",
        "transaction aborted",
        "producer fenced",
        "marker refused",
    }
)
"""Tools read them: they stay as they are."""
GRAVE = frozenset({"leader lost", "unclean election", "dir failed", "corrupt batch", "marker refused"})
"""An operator should look at these."""
ALWAYS_LOGGED = frozenset({"dir failed", "corrupt batch"})


Facts: TypeAlias = dict[str, Any]
"""What there is to know of an event beside its place, in terms of JSON."""


class Event(NamedTuple):
    sequence: int
    """From 1."""
    wall_ms: int
    kind: str
    reason: str
    topic: str | None
    partition: int | None
    facts: Facts
    """What else there is to know, in terms of JSON."""


class Events:
    def __init__(self, clock: Clock, logger: Logger, incarnation_id: Uuid, events_max: int = EVENTS_MAX) -> None:
        self.incarnation_id = incarnation_id
        """Another one in each run of the node: numbers begin anew with it."""
        self.isr_shrinks = self.isr_expands = 0
        """Of partitions that this node led."""
        self.counts: Counter[str] = Counter()
        """By kind, since the node started."""
        self.last = 0
        """The number of the newest event."""
        self._clock = clock
        self._logger = logger
        self._kept: deque[Event] = deque(maxlen=events_max)
        self._waiting: set[asyncio.Future[None]] = set()
        self._image: MetadataImage | None = None
        self._unread: deque[tuple[int, int, Iterator[MetadataChange]]] = deque()
        """What images changed and is still to be noted: when, seen by which node, and the changes."""
        self._window_ends = 0.0
        self._logged = self._unlogged = 0

    def note(
        self, kind: str, reason: str, *, topic: str | None = None, partition: int | None = None, **facts: object
    ) -> None:
        self._keep(self._clock.wall_ms(), kind, reason, topic, partition, facts)
        self._log(kind, reason, topic, partition, facts)
        self._wake()

    def _keep(
        self, wall_ms: int, kind: str, reason: str, topic: str | None, partition: int | None, facts: Facts
    ) -> None:
        assert kind in KINDS, f"there is no kind of event {kind!r}"
        self.last += 1
        self.counts[kind] += 1
        self._kept.append(Event(self.last, wall_ms, kind, reason, topic, partition, facts))

    def _log(self, kind: str, reason: str, topic: str | None, partition: int | None, facts: Facts) -> None:
        if not self._may_log(kind):
            return
        where = {name: value for name, value in (("topic", topic), ("partition", partition)) if value is not None}
        log = self._logger.warning if kind in GRAVE else self._logger.info
        log(kind, reason=reason, **(facts | where))

    def _may_log(self, kind: str) -> bool:
        now = self._clock.monotonic()
        if now >= self._window_ends:
            if self._unlogged:
                self._logger.info("more happened than is logged; /events has it", events=self._unlogged)
            self._window_ends, self._logged, self._unlogged = now + LOGGED_WINDOW_S, 0, 0
        self._logged += 1
        if self._logged > LOGGED_MAX and kind not in ALWAYS_LOGGED:
            self._unlogged += 1
            return False
        return True

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def applied(self, image: MetadataImage, node_id: int, *, live: bool = True) -> None:
        """Note what a newly committed image changed. Not `live`: the node is still reading what happened before it
        came."""
        before, self._image = self._image, image
        if before is not None and live:
            self._unread.append((self._clock.wall_ms(), node_id, changes(before, image)))
            if len(self._unread) == 1:
                self._read_on()

    def _read_on(self) -> None:
        """Note some of what images changed; the rest when others had their turn."""
        last = self.last
        for _ in range(CHANGES_AT_ONCE_MAX):
            wall_ms, node_id, unread = self._unread[0]
            change = next(unread, None)
            if change is not None:
                self._note_change(change, node_id, wall_ms)
                continue
            self._unread.popleft()
            if not self._unread:
                break
        else:
            asyncio.get_running_loop().call_soon(self._read_on)
        if self.last != last:
            self._wake()

    def _note_change(self, change: MetadataChange, node_id: int, wall_ms: int) -> None:
        kind, reason, topic, partition, facts = change
        if kind in ("isr shrunk", "isr expanded") and facts["leader"] == node_id:
            self.isr_shrinks += kind == "isr shrunk"
            self.isr_expands += kind == "isr expanded"
        self._keep(wall_ms, kind, reason, topic, partition, facts)
        self._log(kind, reason, topic, partition, facts)

    def since(self, sequence: int, events_max: int = EVENTS_MAX) -> list[Event]:
        """The oldest of what came after that number. One that is not reached yet was of another run: then all there
        is."""
        if not self._kept or sequence == self.last:
            return []
        first = self._kept[0].sequence
        start = 0 if sequence > self.last else max(0, sequence + 1 - first)
        return list(islice(self._kept, start, start + events_max))

    async def wait(self, sequence: int, timeout_s: float) -> None:
        """Return when there are events after that number, or when the time is over."""
        if sequence != self.last or timeout_s <= 0:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)
