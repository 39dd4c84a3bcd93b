"""What the loop hands out for a callback, a future and a task: asyncio's own types, lighter, and hashed by a sequence number.

Always true: a set of futures or tasks is ordered by their making, never by their addresses; a callback that was cancelled
is not run, and holds on to nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from strandline.sim.context import SimProcess
    from strandline.sim.loop import SimLoop

T = TypeVar("T")


class SimHandle(asyncio.Handle):
    """It sets what the loop needs and leaves out what asyncio keeps for its debug mode."""

    __slots__ = ()
    _args: tuple[object, ...]
    _callback: Callable[..., object]
    _context: contextvars.Context
    _loop: SimLoop
    _repr = None
    _source_traceback = None

    def __init__(
        self, callback: Callable[..., object], args: tuple[object, ...], loop: SimLoop, context: contextvars.Context
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


class SimTimer(asyncio.TimerHandle):
    __slots__ = ()
    _args: tuple[object, ...]
    _callback: Callable[..., object]
    _context: contextvars.Context
    _loop: SimLoop
    _repr = None
    _scheduled: bool
    _source_traceback = None

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: SimLoop,
        context: contextvars.Context,
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = False
        self._scheduled = True

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._callback = self._args = None  # type: ignore[assignment]
            if self._scheduled:
                self._loop.timer_cancelled()


class SimFuture(asyncio.Future[T]):
    """Numbered when it is hashed first: few ever are."""

    __slots__ = ("_sequence",)

    def __hash__(self) -> int:
        try:
            return self._sequence
        except AttributeError:
            loop = cast("SimLoop", self.get_loop())
            self._sequence: int = next(loop.sequence)
            return self._sequence


class SimTask(asyncio.Task[T]):
    """Numbered before it is made: asyncio hashes a task while that goes on, and TaskGroup and wait() walk sets of them."""

    __slots__ = ("name", "process", "sequence")
    name: str | None
    process: SimProcess
    sequence: int

    def __hash__(self) -> int:
        return self.sequence

    def get_name(self) -> str:
        return self.name or f"{self.process.name}-{self.sequence}"

    def set_name(self, value: object, /) -> None:
        self.name = str(value)
