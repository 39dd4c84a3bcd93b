"""Works for a process of their own: it finds them by their names."""

from __future__ import annotations

import os
from dataclasses import dataclass

from strandline.ports import Disk, Pace


@dataclass(frozen=True)
class Copying:
    source: str
    target: str
    step_bytes: int = 10


class Refused(Exception):
    """Its constructor could not make it again from what an exception keeps."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")
        self.other = other


def copy(disk: Disk, pace: Pace, copying: Copying) -> int:
    """Copy a file a few bytes at a time, synced at its end; how many steps that were."""
    source, target = disk.open(copying.source), disk.open(copying.target, create=True)
    steps = 0
    while part := source.read_blocking(target.size, copying.step_bytes):
        target.append(part)
        steps += 1
        pace(len(part))
    target.sync_blocking()
    disk.sync_dir(os.path.dirname(copying.target))
    source.close()
    target.close()
    return steps


def refuse(disk: Disk, pace: Pace, path: str) -> None:
    raise Refused("one", path)


def double(disk: Disk, pace: Pace, number: int) -> int:
    return number * 2
