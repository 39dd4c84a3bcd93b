"""asyncio's event loop on virtual time, with one ready queue for each process.

Time stands still while a callback runs and jumps to the next event when all is quiet. Each process takes turns as a real
event loop does: a turn runs what was ready when it began, and the next one begins a seeded moment later.

Always true: the same seed gives the same history, whatever PYTHONHASHSEED is; callbacks of one process run in the order in
which they became ready; a dead process runs no callback, a paused one none until it is resumed; a run that could go on
for ever ends with an error that says why.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import random
import warnings
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from strandline.sim.context import NODE, Process, State
from strandline.sim.trace import Trace

if TYPE_CHECKING:
    from strandline.sim.network import Network

T = TypeVar("T")
TURN_S = 30e-6
CANCELLED_TIMERS_SWEEP = 256
TASKS_SHOWN_MAX = 20


class Deadlock(RuntimeError):
    """Nothing will ever happen again, and what was to be awaited is not done."""


class Runaway(RuntimeError):
    """The run passed its bound of virtual time or of callbacks."""


class SimHandle(asyncio.Handle):
    __slots__ = ()
    _context: contextvars.Context


class SimTimer(asyncio.TimerHandle):
    __slots__ = ()
    _context: contextvars.Context
    _scheduled: bool


class SimFuture(asyncio.Future[T]):
    """A future whose hash is a sequence number, so that a set of them is not ordered by address."""

    def __hash__(self) -> int:
        try:
            return self._sequence
        except AttributeError:
            loop = self.get_loop()
            assert isinstance(loop, SimLoop)
            self._sequence: int = next(loop.sequence)
            return self._sequence


class SimTask(asyncio.Task[T]):
    """A task whose hash is a sequence number: asyncio keeps tasks in sets, and TaskGroup and wait() walk them."""

    def __init__(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        loop: SimLoop,
        process: Process,
        name: str | None,
        context: contextvars.Context | None,
    ) -> None:
        self._sequence = next(loop.sequence)  # first: asyncio hashes the task while it is being made
        super().__init__(coro, loop=loop, name=name or f"{process.name}-{self._sequence}", context=context)
        process.keep(self)

    def __hash__(self) -> int:
        return self._sequence


class SimLoop(asyncio.BaseEventLoop):
    """`network` answers create_server and create_connection; `schedule` is the door for hardware: links and disks."""

    network: Network

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self.set_debug(False)  # debug mode looks at the real clock
        self.sequence = itertools.count()
        self.trace = Trace()
        self.outside = Process("outside", 0, turn_s=0.0)
        self.processes = [self.outside]
        self.until: float | None = None
        self.steps = 0
        self.steps_max: int | None = None
        self.unhandled: list[BaseException] = []
        self.after_turn: Callable[[Process], None] | None = None
        """Told after each turn of a process, to look at what it did. It must not touch the world; what it raises ends the run."""
        self.at_close: list[Callable[[], None]] = []
        """What else ends with the world."""
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._cancelled_timers = 0
        self._randomness = random.Random(f"{seed}/turns")
        self.set_exception_handler(self._note_unhandled)

    # Processes

    def start_process(self, name: str) -> Process:
        process = Process(name, len(self.processes), TURN_S)
        self.processes.append(process)
        return process

    def pause(self, process: Process) -> None:
        if process.state is State.RUNNING:
            process.state = State.PAUSED

    def resume(self, process: Process) -> None:
        if process.state is State.PAUSED:
            process.state = State.RUNNING
            if process.ready:
                self._plan_turn(process)

    def bury(self, process: Process) -> None:
        """Never run a callback of this process again. Its tasks stay referenced until the loop is closed."""
        process.state = State.DEAD
        process.tasks = process.pending()

    # The parts of BaseEventLoop that touch time or queues

    def time(self) -> float:
        return self._now

    def schedule(self, when: float, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back at a virtual time, on behalf of no process: pausing or killing one does not stop the hardware."""
        heapq.heappush(self._events, (max(when, self._now), next(self.sequence), callback, argument))

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        handle = SimHandle(callback, args, self, context)
        self._make_ready(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        timer = SimTimer(when, callback, args, self, context)
        timer._scheduled = True
        self.schedule(when, self._fire, timer)
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        process = NODE.get(self.outside) if context is None else context.get(NODE, self.outside)
        return SimTask(coro, loop=self, process=process, name=None if name is None else str(name), context=context)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        backlog: int = 100,
        start_serving: bool = True,
        **options: Any,
    ) -> asyncio.AbstractServer:
        _refuse_unsimulated(options)
        return await self.network.create_server(protocol_factory, host, port, backlog, start_serving)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        _refuse_unsimulated(options)
        transport, protocol = await self.network.create_connection(protocol_factory, host, port)
        return cast(asyncio.Transport, transport), protocol

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("threads have no place in a simulation: blocking work goes through Disk.offload")

    def close(self) -> None:
        """End the world. What is still pending, also of dead processes, unwinds now, on a loop that takes no calls."""
        if self.is_closed():
            return
        super().close()
        self._events.clear()
        for end in self.at_close:
            end()
        for process in self.processes:
            process.ready.clear()
            process.state = State.DEAD
            for task in process.pending():
                self._unwind(task)
            process.tasks.clear()

    @staticmethod
    def _unwind(task: asyncio.Task[Any]) -> None:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine = task.get_coro()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what it was given and never came to await
            try:
                if coroutine is not None:
                    coroutine.close()
            except (Exception, asyncio.CancelledError):
                pass  # a `finally` found the world gone

    def _timer_handle_cancelled(self, timer: SimTimer) -> None:
        if not timer._scheduled:
            return
        self._cancelled_timers += 1
        if self._cancelled_timers > CANCELLED_TIMERS_SWEEP and 2 * self._cancelled_timers > len(self._events):
            self._events = [
                event
                for event in self._events
                if not (isinstance(event[3], asyncio.TimerHandle) and (event[3]._cancelled or event[3] is timer))
            ]
            heapq.heapify(self._events)
            self._cancelled_timers = 0

    def _run_once(self) -> None:
        stopping = self._is_stopping
        while not stopping():
            if not self._events:
                raise Deadlock(self._describe("deadlock: nothing will ever happen"))
            if self.until is not None and self._events[0][0] > self.until:
                raise Runaway(self._describe(f"runaway: the virtual time limit of {self.until} s is passed"))
            when, _, callback, argument = heapq.heappop(self._events)
            self._now = when
            callback(argument)

    def _is_stopping(self) -> bool:
        return bool(self._stopping)  # type: ignore[attr-defined]

    # Events

    def _fire(self, timer: SimTimer) -> None:
        timer._scheduled = False
        if timer._cancelled:
            self._cancelled_timers -= 1
            return
        process = self._make_ready(timer)
        self.trace.record(b"time", self._now, process.number)

    def _make_ready(self, handle: SimHandle | SimTimer) -> Process:
        process = handle._context.get(NODE, self.outside)
        if process.state is not State.DEAD:
            process.ready.append(handle)
            if not process.turn_planned and process.state is State.RUNNING:
                self._plan_turn(process)
        return process

    def _plan_turn(self, process: Process) -> None:
        if not process.turn_planned:
            process.turn_planned = True
            delay = process.turn_s * (0.5 + self._randomness.random()) if process.turn_s else 0.0
            heapq.heappush(self._events, (self._now + delay, next(self.sequence), self._turn, process))

    def _turn(self, process: Process) -> None:
        process.turn_planned = False
        ready = process.ready
        left = count = len(ready)
        while left and process.state is State.RUNNING:  # it may pause or kill itself
            left -= 1
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        if ready and process.state is State.RUNNING:
            self._plan_turn(process)
        self.trace.record(b"turn", self._now, process.number, b"%d" % (count - left))
        self.steps += count - left
        if self.steps_max is not None and self.steps > self.steps_max:
            raise Runaway(self._describe(f"runaway: more than {self.steps_max} callbacks"))
        if self.after_turn is not None:
            self.after_turn(process)

    def _note_unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        exception = context.get("exception")
        self.unhandled.append(exception if exception is not None else RuntimeError(context["message"]))

    def _describe(self, what: str) -> str:
        lines = [f"{what} (virtual time {self._now:.6f} s, {self.steps} callbacks run)"]
        for process in self.processes:
            pending = process.pending()
            if process.state is State.DEAD or not (pending or process.ready):
                continue
            lines.append(
                f"{process.name} is {process.state.value}: {len(pending)} tasks, {len(process.ready)} callbacks held"
            )
            lines += [f"  {task.get_name()} waits in {_where(task)}" for task in pending[:TASKS_SHOWN_MAX]]
        return "\n".join(lines)


def _refuse_unsimulated(options: dict[str, Any]) -> None:
    """A difference nobody is told of would hide a bug."""
    for name in ("ssl", "sock"):
        if options.get(name):
            raise NotImplementedError(f"{name}= is not simulated")


def _where(task: asyncio.Task[Any]) -> str:
    """The innermost line a task waits in, and the coroutines around it."""
    names: list[str] = []
    line = 0
    waiting: Any = task.get_coro()
    while waiting is not None and getattr(waiting, "cr_frame", None) is not None:
        line = waiting.cr_frame.f_lineno
        names.append(waiting.cr_code.co_qualname if hasattr(waiting.cr_code, "co_qualname") else waiting.__qualname__)
        waiting = waiting.cr_await
    return f"{' > '.join(names)}, line {line}" if names else repr(task)
