"""An open file on a simulated disk.

Always true: it follows its inode through renames, and keeps working when its name was removed; after a power loss it is of no
use any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.ports import Buffer
from strandline.sim.faults import Fault
from strandline.sim.inode import Inode

if TYPE_CHECKING:
    from strandline.sim.disk import SimDisk


class SimFile:
    __slots__ = ("_closed", "_disk", "inode", "path")

    def __init__(self, disk: SimDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._closed = False
        self.path = path
        self.inode = inode

    @property
    def size(self) -> int:
        return len(self.inode.data)

    def append(self, data: Buffer) -> None:
        assert not self._closed, f"{self.path} is closed"
        self._disk.append(self.path, self.inode, data)

    def read(self, position: int, size: int) -> bytes | None:
        assert not self._closed, f"{self.path} is closed"
        return self._disk.read(self.path, self.inode, position, size)

    def read_blocking(self, position: int, size: int) -> bytes:
        assert not self._closed, f"{self.path} is closed"
        self._disk.faults.check(self.path, Fault.READ_ERROR)
        self.inode.warm(position, size)
        return bytes(self.inode.data[position : position + size])

    def rewrite(self, position: int, data: Buffer) -> None:
        assert not self._closed, f"{self.path} is closed"
        self._disk.rewrite(self.path, self.inode, position, data)

    def truncate(self, size: int) -> None:
        assert not self._closed, f"{self.path} is closed"
        assert 0 <= size <= self.size, "a truncate does not grow a file"
        self._disk.truncate(self.path, self.inode, size)

    async def sync(self) -> None:
        assert not self._closed, f"{self.path} is closed"
        await self._disk.sync(self.path, self.inode)

    def sync_blocking(self) -> None:
        assert not self._closed, f"{self.path} is closed"
        self._disk.sync_blocking(self.path, self.inode)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._disk.forget(self)
