"""Which process a callback belongs to: one life of one node, from its start to its kill.

Always true: every callback, timer and task carries its process in the context variable NODE, so the loop can hold, slow
or forget one process without touching the others; a process that died never runs again, a restarted node is a new one.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
from collections import deque
from collections.abc import Callable

from strandline.sim.handles import SimHandle, SimTimer


class ProcessState(enum.Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class SimProcess:
    """The loop's queue of one process: what is ready, whether its next turn is planned, and its live tasks."""

    __slots__ = (
        "_tasks_sweep_at",
        "ends_turn",
        "failures",
        "name",
        "number",
        "ready",
        "state",
        "stopped",
        "tasks",
        "turn_planned",
        "turn_s",
    )

    def __init__(self, name: str, number: int, turn_s: float) -> None:
        self.name = name
        self.number = number
        self.state = ProcessState.RUNNING
        self.ready: deque[SimHandle | SimTimer] = deque()
        self.ends_turn: list[SimHandle] = []
        """What the turn that runs now will do last: let written bytes leave."""
        self.turn_planned = False
        """Also while a turn runs: what becomes ready then needs no further plan."""
        self.turn_s = turn_s
        """About how long one turn of this process's event loop takes; the world slows a node by raising it."""
        self.stopped: list[Callable[[None], None]] = []
        """Threads of a paused process: where each goes on."""
        self.tasks: list[asyncio.Task[object]] = []
        self._tasks_sweep_at = 64

    def keep(self, task: asyncio.Task[object]) -> None:
        """Hold a task until it is done. Collected while pending, its `finally` would run, at an instant no seed decides."""
        self.tasks.append(task)
        if len(self.tasks) >= self._tasks_sweep_at:
            self.tasks = [task for task in self.tasks if not task.done() or _is_unseen(task)]
            self._tasks_sweep_at = 64 + 2 * len(self.tasks)

    def unseen(self) -> list[asyncio.Task[object]]:
        """Tasks that ended with an error that was not retrieved yet. The task that will retrieve it may be waiting for its turn."""
        # asyncio logs these when the task is collected, at a time that no seed decides.
        return [task for task in self.tasks if _is_unseen(task)]

    def pending(self) -> list[asyncio.Task[object]]:
        return [task for task in self.tasks if not task.done()]

    def __repr__(self) -> str:
        return f"<{self.name}#{self.number} {self.state.value}>"


def _is_unseen(task: asyncio.Task[object]) -> bool:
    return task.done() and not task.cancelled() and bool(task._log_traceback)


NODE: contextvars.ContextVar[SimProcess] = contextvars.ContextVar("strandline.sim.node")
"""Unset outside of any node: in the test or scenario that drives the world."""
