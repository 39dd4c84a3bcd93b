"""The scrubber: reads every closed segment now and then, so that rot is found while other replicas can still help.

Always true: it reads one file at a time, a step after the other, and never faster than `RATE_BYTES_PER_S`; a segment
that was read is left alone for `SCRUB_INTERVAL_S`, or until the node starts again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from strandline.log.errors import CorruptBatch
from strandline.log.scrubbing import ScrubStep, scrub
from strandline.log.segment import Segment
from strandline.node.tasks import to_the_end
from strandline.ports import Clock
from strandline.replica.partition import Partition

RATE_BYTES_PER_S = 8 * 1024 * 1024
SCRUB_INTERVAL_S = 7 * 24 * 3600.0
PAUSE_S = 60.0
"""How often to look for segments that are due."""


class Scrubber:
    def __init__(
        self,
        partitions: Callable[[], Iterable[Partition]],
        clock: Clock,
        on_damaged: Callable[[Partition, CorruptBatch], None],
        on_storage_error: Callable[[Partition, OSError], None],
    ) -> None:
        self.scrubbed_bytes = 0
        """Since the node started."""
        self._partitions = partitions
        self._clock = clock
        self._on_damaged = on_damaged
        self._on_storage_error = on_storage_error
        self._scrubbed_at: WeakKeyDictionary[Segment, float] = WeakKeyDictionary()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(PAUSE_S)
            for partition in list(self._partitions()):
                await self._scrub_partition(partition)

    async def _scrub_partition(self, partition: Partition) -> None:
        for segment in list(partition.log.segments[:-1]):
            scrubbed_at = self._scrubbed_at.get(segment)
            if scrubbed_at is None or self._clock.monotonic() - scrubbed_at >= SCRUB_INTERVAL_S:
                try:
                    await self._scrub_segment(partition, segment)
                except OSError as error:
                    self._on_storage_error(partition, error)
                    return

    async def _scrub_segment(self, partition: Partition, segment: Segment) -> None:
        position, offset, truncations = 0, segment.base_offset, partition.log.truncations

        def is_there() -> bool:
            """Not deleted, not replaced by a cleaned one; nor cut, because what was found may then be half of a
            batch."""
            log = partition.log
            is_open = not partition.gone and not partition.offline
            return is_open and segment in log.segments and log.truncations == truncations

        while is_there() and position < segment.size:
            step = await to_the_end(self._step(partition, segment, position, offset, is_there))
            if step is None or not is_there():
                return
            if step.damaged is not None:
                self._on_damaged(partition, step.damaged)
            step_bytes = step.position - position
            position, offset = step.position, step.offset
            self.scrubbed_bytes += step_bytes
            await asyncio.sleep(step_bytes / RATE_BYTES_PER_S)
        self._scrubbed_at[segment] = self._clock.monotonic()

    async def _step(
        self, partition: Partition, segment: Segment, position: int, offset: int, is_there: Callable[[], bool]
    ) -> ScrubStep | None:
        """None if the segment left the log before its files could be held."""
        log = partition.log
        with log.held():
            if not is_there():
                return None
            return await log.disk.offload(lambda: scrub(segment, position, offset, log.epochs), log.directory)
