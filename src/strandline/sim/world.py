"""One simulated world: a loop, a network and the nodes on it, all from one seed.

A node outlives its processes: its disk, its clock and its name stay when it is killed, and `restart` gives it a new process.

Always true: chance comes from the seed only, in separate streams for turns, network, each disk and each node, so that one
more draw in one does not shift the others; what a node runs, it runs in its own process's context.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
from collections.abc import Coroutine
from types import TracebackType
from typing import TypeVar

from strandline.sim.clock import SimClock
from strandline.sim.context import NODE, ProcessState, SimProcess
from strandline.sim.disk import SimDisk
from strandline.sim.loop import TURN_S, SimLoop
from strandline.sim.network import Network

T = TypeVar("T")
UNTIL_S = 3600.0
STEPS_MAX = 50_000_000
LOOK_S = 0.1
"""How long a task may still retrieve the error of a failed one, when the world ends."""


class SimNode:
    """A host with its disk and clock, and the process that lives there now."""

    def __init__(self, world: World, name: str, number: int) -> None:
        self.name = name
        self.world = world
        self.clock = SimClock(
            world.loop,
            monotonic_start=world.faults.uniform(1.0, 1e6),
            wall_offset_ms=world.faults.randint(-500, 500),
            drift=world.faults.uniform(-5e-5, 5e-5),
        )
        self.disk = SimDisk(world.loop, self.clock, random.Random(f"{world.seed}/disk/{name}"), number=number)
        self._life = 0
        self._start_process()

    @property
    def alive(self) -> bool:
        return self.process.state is not ProcessState.DEAD

    def spawn(self, coroutine: Coroutine[object, None, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Run a coroutine as this node's process. If the node is killed, its task never ends."""
        assert self.alive, f"{self.name} is dead; restart it first"
        return self.world.loop.create_task(coroutine, name=name, context=self._context.copy())

    def pause(self) -> None:
        """As SIGSTOP: its callbacks and the bytes that arrive are held until it is resumed."""
        self.world.loop.pause(self.process)

    def resume(self) -> None:
        self.world.loop.resume(self.process)

    def slow(self, factor: float) -> None:
        """Let each turn of its event loop take `factor` times as long; 1 is the usual pace."""
        self.process.turn_s = TURN_S * factor

    def kill(self) -> None:
        """As SIGKILL: ports first, then nothing of it runs again, no `finally` either. The page cache stays."""
        if self.alive:
            self.world.network.cut_ports(self.process, silently=False)
            self.world.loop.bury(self.process)

    def power_loss(self) -> None:
        """The host goes dark: peers hear nothing, and the disk keeps only what was synced."""
        self.world.network.power_off(self.name)
        if self.alive:
            self.world.network.cut_ports(self.process, silently=True)
            self.world.loop.bury(self.process)
        self.disk.power_loss()

    def restart(self) -> None:
        """A new process on the same disk; what it runs is up to `spawn`."""
        assert not self.alive, f"{self.name} is still alive"
        self.world.network.power_on(self.name)
        self._start_process()

    def _start_process(self) -> None:
        self._life += 1
        self.process: SimProcess = self.world.loop.start_process(self.name)
        self.randomness = random.Random(f"{self.world.seed}/node/{self.name}/{self._life}")
        self._context = contextvars.Context()
        self._context.run(NODE.set, self.process)


class World:
    def __init__(self, seed: int | str = 0) -> None:
        self.seed = seed
        self.loop = SimLoop(seed)
        self.network = Network(self.loop, seed)
        self.faults = random.Random(f"{seed}/faults")
        """For the scenario's own choices: whom to kill, when to cut."""
        self.nodes: dict[str, SimNode] = {}

    @property
    def now(self) -> float:
        return self.loop.time()

    @property
    def trace_hash(self) -> str:
        return self.loop.trace.hexdigest()

    def node(self, name: str) -> SimNode:
        """The node of that name; a new one the first time."""
        if name not in self.nodes:
            self.network.hosts[name] = None
            self.nodes[name] = SimNode(self, name, len(self.nodes) + 1)
        return self.nodes[name]

    def run(self, coroutine: Coroutine[object, None, T], *, until: float = UNTIL_S, steps_max: int = STEPS_MAX) -> T:
        """Drive the world until the coroutine is done, at most `until` virtual seconds from now.

        Unhandled exceptions of any node's callbacks or tasks are raised here as a group.
        """
        self.loop.until = self.now + until
        self.loop.steps_max = self.loop.steps + steps_max
        # An abandoned stream closes its connection when it is collected: when that is must not depend on what else this
        # process has allocated.
        collecting = gc.isenabled()
        gc.disable()
        try:
            result = self.loop.run_until_complete(coroutine)
            unseen = [task for process in self.loop.processes for task in process.unseen()]
            if unseen:
                self.loop.run_until_complete(asyncio.sleep(LOOK_S))
        finally:
            if collecting:
                gc.enable()
        unhandled, self.loop.unhandled = self.loop.unhandled, []
        unhandled += [error for task in unseen if task._log_traceback and (error := task.exception()) is not None]
        if unhandled:
            raise BaseExceptionGroup(f"unhandled exceptions (seed {self.seed})", unhandled)
        return result

    def close(self) -> None:
        self.loop.close()

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
