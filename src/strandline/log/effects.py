"""What work on a log needs of the device: blocking work beside the event loop, and the sync of a file.

Work that must wait (a flush, a swap, a repair) is a generator. It yields one effect after the other and is sent what came of
each, or thrown what it raised; `node/log_effects.py` performs them. So the log decides what is done in which order, and knows
neither asyncio nor threads; a test performs the same effects one by one.

Always true: such work touches its log only between two effects, on the event loop. What may have changed during an effect is
asked again after it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from strandline.ports import Disk, File

T = TypeVar("T")


class OffloadWork(NamedTuple):
    """Do this blocking work for what lies at `path` beside the event loop (`Disk.offload`)."""

    disk: Disk
    work: Callable[[], object]
    path: str


class SyncFile(NamedTuple):
    """Bring what was appended to this file to the device (`File.sync`)."""

    file: File


LogEffect = OffloadWork | SyncFile
LogWork = Generator[LogEffect, Any, T]


def offloaded(disk: Disk, work: Callable[[], T], path: str) -> LogWork[T]:
    """What `work` returns, to be asked for with `yield from`."""
    result: T = yield OffloadWork(disk, work, path)
    return result


def synced(file: File) -> LogWork[None]:
    yield SyncFile(file)
