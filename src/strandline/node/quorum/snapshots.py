"""The snapshots of the metadata on disk: `<end offset>-<epoch>.checkpoint` beside the metadata log. `snapshotting.py` takes
them.

Always true: a file with that name is whole and on the device (rule D11): it is written or fetched as `.part`, synced, renamed,
and the name is synced. The one that `storage format` writes, at offset 0, says who votes first; it is no snapshot of the log
and no node fetches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from strandline.metadata import snapshot as layout
from strandline.metadata.snapshot import CorruptSnapshot, Snapshot
from strandline.ports import Disk, File
from strandline.raft.messages import OffsetAndEpoch

T = TypeVar("T")

SUFFIX, PART_SUFFIX = ".checkpoint", ".checkpoint.part"
BOOTSTRAP = OffsetAndEpoch(0, 0)
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")

__all__ = ["BOOTSTRAP", "CorruptSnapshot", "Snapshot", "Snapshots", "name_of"]


def name_of(snapshot_id: OffsetAndEpoch, suffix: str = SUFFIX) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{suffix}"


class Snapshots:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._sizes: dict[OffsetAndEpoch, int] = {}
        self._part: tuple[OffsetAndEpoch, File] | None = None
        """The one that is being fetched."""

    # What is there

    def find(self) -> None:
        """Look through the directory; what was not finished is removed. Blocks."""
        for name in self._disk.listdir(self._directory):
            if name.endswith(PART_SUFFIX):
                self._disk.remove(f"{self._directory}/{name}")
            elif (match := _NAME.fullmatch(name)) is not None:
                snapshot_id = OffsetAndEpoch(int(match[1]), int(match[2]))
                self._sizes[snapshot_id] = self._disk.size(self._path(snapshot_id))

    @property
    def ids(self) -> list[OffsetAndEpoch]:
        """Of the log, the oldest first."""
        return sorted(snapshot_id for snapshot_id in self._sizes if snapshot_id.offset > 0)

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return max((snapshot_id for snapshot_id in self._sizes if snapshot_id.offset > 0), default=None)

    def at(self, offset: int) -> OffsetAndEpoch | None:
        """The snapshot that ends at this offset."""
        return max((snapshot_id for snapshot_id in self.ids if snapshot_id.offset == offset), default=None)

    @property
    def has_bootstrap(self) -> bool:
        return BOOTSTRAP in self._sizes

    def size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        return self._sizes.get(snapshot_id) if snapshot_id.offset > 0 else None

    def age_ms(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> int:
        return now_ms - self._disk.mtime_ms(self._path(snapshot_id))

    # Reading

    def read(self, snapshot_id: OffsetAndEpoch) -> Snapshot:
        """CorruptSnapshot if it is not whole. Blocks."""
        return layout.read(self._disk.read_file(self._path(snapshot_id)))

    async def chunk(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes | None:
        """A part of it; None if it is gone."""
        if snapshot_id not in self._sizes:
            return None
        file = self._disk.open(self._path(snapshot_id))
        try:
            found = file.read(position, max_bytes)
            return (
                found
                if found is not None
                else await self._disk.offload(lambda: file.read_blocking(position, max_bytes), self._directory)
            )
        finally:
            file.close()

    # Taking

    def write(self, snapshot_id: OffsetAndEpoch, chunks: Iterable[bytes]) -> int:
        """Put a snapshot in its place; its size. Blocks."""
        part = self._path(snapshot_id, PART_SUFFIX)
        self._disk.remove(part)
        file = self._disk.open(part, create=True)
        try:
            for chunk in chunks:
                file.append(chunk)
            file.sync_blocking()
            size = file.size
        finally:
            file.close()
        self._settle(snapshot_id)
        return size

    def add(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """It is in its place, on the device."""
        self._sizes[snapshot_id] = size

    def _settle(self, snapshot_id: OffsetAndEpoch) -> None:
        self._disk.rename(self._path(snapshot_id, PART_SUFFIX), self._path(snapshot_id))
        self._disk.sync_dir(self._directory)

    # Fetching

    def store(self, snapshot_id: OffsetAndEpoch, position: int, chunk: bytes) -> None:
        """A chunk from the leader; the one at position 0 begins it anew."""
        if position == 0:
            self.drop_part()
            part = self._path(snapshot_id, PART_SUFFIX)
            self._disk.remove(part)
            self._part = (snapshot_id, self._disk.open(part, create=True))
        assert self._part is not None, "a snapshot begins at position 0"
        fetching, file = self._part
        assert (fetching, file.size) == (snapshot_id, position), "the chunks of one snapshot come in order"
        file.append(chunk)

    def drop_part(self) -> None:
        if self._part is not None:
            snapshot_id, file = self._part
            self._part = None
            file.close()
            self._disk.remove(self._path(snapshot_id, PART_SUFFIX))

    async def finish(self, snapshot_id: OffsetAndEpoch, use: Callable[[Snapshot], T]) -> T:
        """Check what was fetched and put it in its place; CorruptSnapshot, and it is gone, if it is not whole.

        What `use` makes of it, beside the event loop, is returned."""
        assert self._part is not None
        fetched, file = self._part
        assert fetched == snapshot_id
        part, size = self._path(snapshot_id, PART_SUFFIX), file.size

        def work() -> T:
            result = use(layout.read(self._disk.read_file(part)))
            file.sync_blocking()
            self._settle(snapshot_id)
            return result

        try:
            result = await self._disk.offload(work, self._directory)
        except CorruptSnapshot:
            self.drop_part()
            raise
        self._part = None
        file.close()
        self.add(snapshot_id, size)
        return result

    # Leaving

    def forget(self, snapshot_id: OffsetAndEpoch) -> str:
        """Take it out of the list; the file to remove."""
        del self._sizes[snapshot_id]
        return self._path(snapshot_id)

    def _path(self, snapshot_id: OffsetAndEpoch, suffix: str = SUFFIX) -> str:
        return f"{self._directory}/{name_of(snapshot_id, suffix)}"
