"""Both worlds behind one fixture: a story runs on real files and sockets, and again in the simulator.

A story that passes in one world only is a difference between them, and so a bug in the simulator or in the runtime.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from strandline.ports import Clock, Disk
from strandline.runtime.clock import SystemClock
from strandline.runtime.disk import FileDisk
from strandline.runtime.loop import run
from strandline.sim.world import World

T = TypeVar("T")


class Stage:
    """One node in one of the worlds."""

    disk: Disk
    clock: Clock
    root: str
    simulated: bool

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError


class RealStage(Stage):
    simulated = False

    def __init__(self, root: Path) -> None:
        self.real_disk = FileDisk(max_open_files=4)
        self.disk = self.real_disk
        self.clock = SystemClock()
        self.root = str(root)

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return run(story)


class SimStage(Stage):
    simulated = True

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.node = self.world.node("n1")
        self.disk = self.node.disk
        self.clock = self.node.clock
        self.root = "/data"
        self.disk.mkdir(self.root)

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            return await self.node.spawn(story)

        return self.world.run(main())


@pytest.fixture(params=["real", "sim-1", "sim-2", "sim-3"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "real":
        real = RealStage(tmp_path)
        yield real
        real.real_disk.close()
    else:
        sim = SimStage(int(request.param[-1]))
        yield sim
        sim.world.close()
