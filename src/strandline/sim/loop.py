"""asyncio's event loop on virtual time, with one ready queue for each process.

Time stands still while a callback runs and jumps to the next event when all is quiet. Each process takes turns as a real
event loop does: a turn runs what was ready when it began, then lets written bytes leave, and the next one begins a seeded
moment later. Turns between which nothing else happens anywhere are run in a row.

Always true: the same seed gives the same history, for every PYTHONHASHSEED; callbacks of one process run in the order in
which they became ready; a dead process runs no callback, a paused one none until it is resumed; a run that could go on
for ever ends with an error that says why.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import math
import random
import sys
import warnings
from collections.abc import Callable, Coroutine, Generator
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, overload

from strandline.sim.context import NODE, ProcessState, SimProcess
from strandline.sim.handles import SimFuture, SimHandle, SimTask, SimTimer
from strandline.sim.trace import Trace

if TYPE_CHECKING:
    from strandline.sim.network import Network

T = TypeVar("T")
TURN_S = 30e-6
CANCELLED_TIMERS_SWEEP = 256
TASKS_SHOWN_MAX = 20
STEPS_IN_A_ROW_MAX = 1000
RUNNING, PAUSED, DEAD = ProcessState.RUNNING, ProcessState.PAUSED, ProcessState.DEAD


class Deadlock(RuntimeError):
    """Nothing will ever happen again, and what was to be awaited is not done."""


class Runaway(RuntimeError):
    """The run passed its bound of virtual time or of callbacks."""


class SimLoop(asyncio.BaseEventLoop):
    """`network` answers create_server and create_connection; `schedule` is the door for hardware: links and disks."""

    network: Network
    _closed: bool
    _stopping: bool

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self.set_debug(False)  # debug mode looks at the real clock
        self.sequence = itertools.count()
        self.trace = Trace()
        self.outside = SimProcess("outside", 0, turn_s=0.0)
        self.processes = [self.outside]
        self.until = math.inf
        self.steps = 0
        self.steps_max = sys.maxsize
        self.unhandled: list[BaseException] = []
        self.after_turn: Callable[[SimProcess], None] | None = None
        """Called after a process took a turn, or several in a row, before anything else happens: to check what it did. It
        must not change the world; what it raises ends the run."""
        self.at_close: list[Callable[[], None]] = []
        """What else ends with the world."""
        self.running: SimProcess | None = None
        """Whose callbacks run now; None while a turn ends, and between turns."""
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], object]] = []
        self._cancelled_timers = 0
        self._random = random.Random(f"{seed}/turns").random
        self.set_exception_handler(self._note_unhandled)

    # Processes

    def start_process(self, name: str) -> SimProcess:
        process = SimProcess(name, len(self.processes), TURN_S)
        self.processes.append(process)
        return process

    def pause(self, process: SimProcess) -> None:
        if process.state is RUNNING:
            process.state = PAUSED

    def resume(self, process: SimProcess) -> None:
        if process.state is PAUSED:
            process.state = RUNNING
            if process.ready and not process.turn_planned:
                self._plan_turn(process)
            for go_on in process.stopped:
                self.schedule(self._now, go_on)
            process.stopped.clear()

    def bury(self, process: SimProcess) -> None:
        """Never run a callback of this process again. Its tasks stay referenced until the loop is closed."""
        process.state = DEAD
        process.tasks = process.pending()
        process.stopped.clear()

    # The parts of BaseEventLoop that touch time or queues

    def time(self) -> float:
        return self._now

    @overload
    def schedule(self, when: float, callback: Callable[[None], None]) -> None: ...

    @overload
    def schedule(self, when: float, callback: Callable[[T], None], argument: T) -> None: ...

    def schedule(self, when: float, callback: Callable[..., None], argument: object = None) -> None:
        """Call back at a virtual time, on behalf of no process: pausing or killing one does not stop the hardware."""
        heapq.heappush(self._events, (max(when, self._now), next(self.sequence), callback, argument))

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = contextvars.copy_context()
        handle = SimHandle(callback, args, self, context)
        process = context.get(NODE, self.outside)
        if process.turn_planned:
            process.ready.append(handle)
        else:
            self.make_ready(process, handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = SimTimer(when, callback, args, self, contextvars.copy_context() if context is None else context)
        heapq.heappush(self._events, (max(when, self._now), next(self.sequence), self._fire, timer))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(
        self,
        coro: Generator[object, None, T] | Coroutine[object, None, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        process = NODE.get(self.outside) if context is None else context.get(NODE, self.outside)
        task: SimTask[T] = SimTask.__new__(SimTask)
        task.process = process
        task.name = None if name is None else str(name)
        task.sequence = next(self.sequence)
        task.__init__(coro, loop=self, context=context)  # type: ignore[misc]
        process.keep(task)
        return task

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        backlog: int = 100,
        start_serving: bool = True,
        **options: object,
    ) -> asyncio.AbstractServer:
        _refuse_unsimulated(options)
        return await self.network.create_server(protocol_factory, host, port, backlog, start_serving)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        **options: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        _refuse_unsimulated(options)
        transport, protocol = await self.network.create_connection(protocol_factory, host, port)
        return cast(asyncio.Transport, transport), protocol

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> NoReturn:
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
            process.state = DEAD
            process.turn_planned = False
            for task in process.pending():
                self._unwind(task)
            process.tasks.clear()

    @staticmethod
    def _unwind(task: asyncio.Task[object]) -> None:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine = task.get_coro()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what it was given and never came to await
            try:
                if coroutine is not None:
                    coroutine.close()
            except (Exception, asyncio.CancelledError):
                pass  # a `finally` found the world gone

    def timer_cancelled(self) -> None:
        """A timer that waits in the heap was cancelled: once they are many, they are swept out."""
        self._cancelled_timers += 1
        if self._cancelled_timers > CANCELLED_TIMERS_SWEEP and 2 * self._cancelled_timers > len(self._events):
            self._events[:] = [
                event for event in self._events if not (isinstance(event[3], SimTimer) and event[3]._cancelled)
            ]
            heapq.heapify(self._events)
            self._cancelled_timers = 0

    def _run_once(self) -> None:
        events = self._events
        until = self.until
        while not self._stopping:
            if not events:
                raise Deadlock(self._describe("deadlock: nothing will ever happen"))
            if events[0][0] > until:
                raise Runaway(self._describe(f"runaway: the virtual time limit of {until} s is passed"))
            self._now, _, callback, argument = heapq.heappop(events)
            callback(argument)

    # Events

    def _fire(self, timer: SimTimer) -> None:
        timer._scheduled = False
        if timer._cancelled:
            self._cancelled_timers -= 1
            return
        process = timer._context.get(NODE, self.outside)
        self.make_ready(process, timer)
        self.trace.record(b"time", self._now, process.number)

    def make_ready(self, process: SimProcess, handle: SimHandle | SimTimer) -> None:
        """Run this in the process's next turn."""
        if process.state is DEAD:
            if self._closed:
                raise RuntimeError("Event loop is closed")
            return
        process.ready.append(handle)
        if not process.turn_planned and process.state is RUNNING:
            self._plan_turn(process)

    def _plan_turn(self, process: SimProcess) -> None:
        process.turn_planned = True
        delay = process.turn_s * (0.5 + self._random()) if process.turn_s else 0.0
        heapq.heappush(self._events, (self._now + delay, next(self.sequence), self._turns, process))

    def _turns(self, process: SimProcess) -> None:
        """A turn, and those that follow it before anything else happens."""
        events, steps_before = self._events, self.steps
        while True:
            self._turn(process)
            if not process.ready or process.state is not RUNNING:
                process.turn_planned = False
                break
            next_at = self._now + (process.turn_s * (0.5 + self._random()) if process.turn_s else 0.0)
            is_next = (not events or next_at < events[0][0]) and next_at <= self.until and not self._stopping
            if not is_next or self.steps - steps_before > STEPS_IN_A_ROW_MAX:
                heapq.heappush(events, (next_at, next(self.sequence), self._turns, process))
                break
            self._now = next_at
        self.trace.record(b"turn", self._now, process.number, b"%d" % (self.steps - steps_before))
        if self.steps > self.steps_max:
            raise Runaway(self._describe(f"runaway: more than {self.steps_max} callbacks"))
        if self.after_turn is not None:
            self.after_turn(process)

    def _turn(self, process: SimProcess) -> None:
        ready = process.ready
        left = count = len(ready)
        self.running = process
        while left and process.state is RUNNING:  # it may pause or kill itself
            left -= 1
            handle = ready.popleft()
            if not handle._cancelled:
                self._run(handle)
        self.running = None
        self.steps += count - left
        if process.ends_turn:
            last, process.ends_turn = process.ends_turn, []
            for handle in last:
                self._run(handle)

    def _run(self, handle: SimHandle | SimTimer) -> None:
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as failure:
            self.call_exception_handler(
                {"message": f"a callback failed: {handle!r}", "exception": failure, "handle": handle}
            )

    def _note_unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        exception = context.get("exception")
        self.unhandled.append(exception if isinstance(exception, BaseException) else RuntimeError(context["message"]))

    def _describe(self, what: str) -> str:
        lines = [f"{what} (virtual time {self._now:.6f} s, {self.steps} callbacks run)"]
        for process in self.processes:
            pending = process.pending()
            if process.state is DEAD or not (pending or process.ready):
                continue
            lines.append(
                f"{process.name} is {process.state.value}: {len(pending)} tasks, {len(process.ready)} callbacks held"
            )
            lines += [f"  {task.get_name()} waits in {_where(task)}" for task in pending[:TASKS_SHOWN_MAX]]
        return "\n".join(lines)


def _refuse_unsimulated(options: dict[str, object]) -> None:
    """An option that is silently ignored would hide a bug."""
    for name in ("ssl", "sock"):
        if options.get(name):
            raise NotImplementedError(f"{name}= is not simulated")


def _where(task: asyncio.Task[object]) -> str:
    """The innermost line a task waits in, and the coroutines around it."""
    names: list[str] = []
    line = 0
    waiting: object = task.get_coro()
    while isinstance(waiting, CoroutineType) and waiting.cr_frame is not None:
        line = waiting.cr_frame.f_lineno
        names.append(waiting.cr_code.co_qualname)
        waiting = waiting.cr_await
    return f"{' > '.join(names)}, line {line}" if names else repr(task)
