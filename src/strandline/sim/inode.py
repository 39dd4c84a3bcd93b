"""The bytes of one simulated file: what was written, and what would still be there after a power loss.

`data` is the page cache, `durable` the device. They agree on the first `clean` bytes; what follows in `data` is dirty, what
follows in `durable` was cut by a truncate that is not yet synced.

Always true: a power loss keeps every byte of `data` that a sync covered and no truncate cut; it may keep any part of the rest.
"""

from __future__ import annotations

import random

PAGE_BYTES = 4096
SECTOR_BYTES = (512, 4096)


class SyncMark:
    """What a sync, once it is through, has covered: the bytes that were there when it began."""

    __slots__ = ("cut", "upto")

    def __init__(self, upto: int) -> None:
        self.upto = upto
        self.cut = False
        """A truncate came in between; whether that one is durable is left open."""


class Inode:
    __slots__ = ("clean", "cold", "data", "durable", "lost", "marks", "mtime_ms", "number")

    def __init__(self, number: int, mtime_ms: int, durable: bytes = b"") -> None:
        self.number = number
        self.mtime_ms = mtime_ms
        self.data = bytearray(durable)
        self.durable = bytearray(durable)
        self.clean = len(durable)
        self.marks: dict[SyncMark, None] = {}
        self.lost: list[tuple[int, int]] = []
        """Ranges a failed sync dropped: in memory they read well, on the device they will not be unless they are written again."""
        self.cold: set[int] = set()
        """Pages that must be read from the device first."""

    @property
    def dirty(self) -> bool:
        return self.clean != len(self.data) or self.clean != len(self.durable)

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.clean = min(self.clean, size)
        self.lost = [(start, min(end, size)) for start, end in self.lost if start < size]
        self.cold = {page for page in self.cold if page * PAGE_BYTES < size}
        for mark in self.marks:
            if mark.upto > size:
                mark.upto, mark.cut = size, True

    def rewrite(self, start: int, stop: int) -> None:
        """The same bytes are written once more: what a failed sync dropped of them is dirty again."""
        kept = []
        for lost_start, lost_stop in self.lost:
            if start < lost_stop and lost_start < stop:
                self.clean = min(self.clean, max(start, lost_start))
            kept += [(lost_start, min(lost_stop, start)), (max(lost_start, stop), lost_stop)]
        self.lost = [(lost_start, lost_stop) for lost_start, lost_stop in kept if lost_start < lost_stop]

    def begin_sync(self) -> SyncMark:
        mark = SyncMark(len(self.data))
        self.marks[mark] = None
        return mark

    def end_sync(self, mark: SyncMark) -> None:
        self.marks.pop(mark, None)
        if mark.upto < self.clean:
            return  # a later sync was faster
        end = mark.upto if mark.cut else len(self.durable)
        self.durable[self.clean : max(end, self.clean)] = self.data[self.clean : mark.upto]
        for start, stop in self.lost:
            stop = min(stop, mark.upto)
            if self.clean < stop:
                start = max(start, self.clean)
                self.durable[start:stop] = bytes(max(0, stop - start))
        self.clean = mark.upto

    def fail_sync(self, mark: SyncMark) -> None:
        """The device refused: the dirty pages are marked clean all the same, and no later sync will write them."""
        self.marks.pop(mark, None)
        if self.clean < mark.upto:
            self.lost.append((self.clean, mark.upto))

    def warm(self, position: int, size: int) -> None:
        self.cold.difference_update(range(position // PAGE_BYTES, (position + size) // PAGE_BYTES + 1))

    def is_cold(self, position: int, size: int) -> bool:
        return any(page in self.cold for page in range(position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES + 1))

    def flip_bit(self, position: int, bit: int) -> None:
        for content in (self.data, self.durable):
            if position < len(content):
                content[position] ^= 1 << bit

    def after_power_loss(self, randomness: random.Random) -> bytes:
        """What the device holds: all that was synced, and of the rest what the seed decides."""
        if len(self.durable) > self.clean and randomness.random() < 0.5:
            return bytes(self.durable)  # the truncate, and all that came after it, never reached the device
        result = bytearray(self.durable[: self.clean])
        dirty = self._dirty_bytes()
        fate = randomness.random()
        if not dirty or fate < 0.25:
            return bytes(result)
        kept = dirty[: randomness.randint(0, len(dirty))] if fate < 0.85 else dirty
        if fate >= 0.5:
            _tear(kept, self.clean, randomness)
        return bytes(result + kept)

    def _dirty_bytes(self) -> bytearray:
        dirty = self.data[self.clean :]
        for start, stop in self.lost:
            if stop > self.clean:
                start = max(start, self.clean) - self.clean
                dirty[start : stop - self.clean] = bytes(stop - self.clean - start)
        return dirty


def _tear(kept: bytearray, position: int, randomness: random.Random) -> None:
    """The size grew, but single sectors were not written, or hold what was there before; in no order."""
    sector = randomness.choice(SECTOR_BYTES)
    damaged_share = randomness.choice((0.1, 0.5, 1.0))
    start = 0
    while start < len(kept):
        stop = min(start + sector - (position + start) % sector, len(kept))
        if randomness.random() < damaged_share:
            zeros = randomness.random() < 0.7
            kept[start:stop] = bytes(stop - start) if zeros else randomness.randbytes(stop - start)
        start = stop
