"""What a simulated disk holds, what the world does to it and what it may see of it.

Always true: all that is done to names and bytes is recorded with its time; a power loss keeps what was synced; looking
meets no fault, takes no virtual time and draws no chance.
"""

from __future__ import annotations

import errno
import random

from strandline.ports import Clock
from strandline.sim.context import SimProcess
from strandline.sim.faults import Fault, Faults
from strandline.sim.file import SimFile
from strandline.sim.inode import PAGE_BYTES, Inode, SyncMark
from strandline.sim.loop import SimLoop
from strandline.sim.namespace import Directory, Namespace, clean, error


class Storage:
    def __init__(
        self,
        loop: SimLoop,
        clock: Clock,
        randomness: random.Random,
        *,
        number: int = 0,
        capacity_bytes: int = 1 << 40,
        cold_probability: float = 0.01,
    ) -> None:
        self.faults = Faults()
        self.cold_probability = cold_probability
        self.capacity_bytes = capacity_bytes
        self._loop = loop
        self._clock = clock
        self._randomness = randomness
        self._number = number
        self._names = Namespace()
        self._inodes = 0
        self._used_bytes = 0
        self._files: dict[SimFile, None] = {}
        self._dirty: dict[Inode, None] = {}
        self._locks: dict[str, SimProcess] = {}

    # What the world does to it

    def power_loss(self, randomness: random.Random | None = None) -> None:
        """Lose what was not synced. Files that were open are of no use afterwards."""
        randomness = randomness or self._randomness
        self._names.power_loss(randomness)
        survivors: dict[Inode, Inode] = {}
        for inode in self._names.files():
            if inode not in survivors:
                survivors[inode] = self._survivor(inode, randomness)
        self._names.replace_files(survivors)
        self._forget_all()
        self._used_bytes = sum(len(inode.data) for inode in survivors.values())
        self._record(b"powr", "/")
        for path, inode in self._names.walk():
            self._record(b"kept", path, bytes(inode.data))

    def replace_with_new(self) -> None:
        """The device is gone with all it held, and an empty one is in its place. Files that were open are of no use."""
        changes = self._names.changes
        self._names = Namespace()
        self._names.changes = changes + 1
        self._forget_all()
        self._used_bytes = 0
        self._record(b"gone", "/")

    def flip_bit(self, path: str, position: int | range | None = None, bit: int | None = None) -> int:
        """Rot one bit at rest, in memory and on the device: at a position, within a range, or anywhere; where it was.

        Anywhere means among the bytes that are on the device, as long as there are any.
        """
        inode = self._names.file(path)
        assert inode.data, "an empty file has no bits"
        if position is None:
            position = range(inode.clean or len(inode.data))
        if isinstance(position, range):
            position = self._randomness.choice(position)
        bit = self._randomness.randrange(8) if bit is None else bit
        inode.flip_bit(position, bit)
        self._record(b"flip", clean(path), b"%d %d" % (position, bit))
        return position

    # What the world sees of it

    @property
    def changes(self) -> int:
        """How often a name was made, moved, replaced or removed."""
        return self._names.changes

    def peek(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        entry = self._names.find(path)
        return bytes(entry.data) if isinstance(entry, Inode) else None

    def durable_size(self, path: str) -> int:
        """So many bytes of a file would be there after a power loss, under every seed; -1 if its name might not."""
        entry: Inode | Directory | None = self._names.root
        for part in clean(path).split("/")[1:]:
            entry = entry.durable.get(part) if isinstance(entry, Directory) else None
        if not isinstance(entry, Inode) or entry is not self._names.find(path):
            return -1
        return min([entry.clean, *(start for start, _ in entry.lost)])

    def peek_names(self, path: str) -> list[str]:
        entry = self._names.find(path)
        return sorted(entry.names) if isinstance(entry, Directory) else []

    # Within

    def _new_inode(self, durable: bytes = b"") -> Inode:
        self._inodes += 1
        return Inode(self._inodes, self._clock.wall_ms(), durable)

    def _survivor(self, inode: Inode, randomness: random.Random) -> Inode:
        self._inodes += 1
        survivor = Inode(
            self._inodes, inode.mtime_ms, inode.after_power_loss(randomness) if inode.dirty else bytes(inode.durable)
        )
        if self.cold_probability:
            survivor.cold.update(range(len(survivor.data) // PAGE_BYTES + 1))
        return survivor

    def _forget_all(self) -> None:
        self._files.clear()
        self._dirty.clear()
        self._locks.clear()

    def _end_sync(self, path: str, inode: Inode, mark: SyncMark) -> OSError | None:
        """The device is done with what a mark covers, or refuses."""
        try:
            self.faults.check(path, Fault.SYNC_ERROR)
        except OSError as failure:
            self._record_file(b"nsyn", inode, b"%d" % mark.upto)
            inode.fail_sync(mark)
            return failure
        self._record_file(b"sync", inode, b"%d" % mark.upto)
        inode.end_sync(mark)
        if not inode.dirty:
            self._dirty.pop(inode, None)
        return None

    def _claim(self, path: str, size: int) -> None:
        if self._used_bytes + size > self.capacity_bytes:
            self._used_bytes = sum(len(inode.data) for inode in self._names.files())  # removed files gave room
            if self._used_bytes + size > self.capacity_bytes:
                raise error(errno.ENOSPC, path)
        self._used_bytes += size

    def _record(self, kind: bytes, path: str, data: bytes = b"") -> None:
        self._loop.trace.record(kind, self._loop.time(), self._number, path.encode() + b"\0" + data)

    def _record_file(self, kind: bytes, inode: Inode, data: bytes) -> None:
        self._loop.trace.record(kind, self._loop.time(), self._number << 32 | inode.number, data)
