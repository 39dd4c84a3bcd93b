"""The processes that play histories: each is handed one task at a time, and reused for the next.

A history takes half a second and a message a tenth of a millisecond, so nothing is gained by handing out more than one.

Always true: every task that was handed out comes back as an outcome; where its process crashed or hung that is the
problem of the outcome, which names the seed, and another process takes its place. No more outcomes are held than there
are processes.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import NamedTuple, cast

from strandline.histories.outcome import HistoryOutcome, Problem

CRASH, HUNG, EXCEPTION = "the process crashed", "the process hung", "an unhandled exception"
"""Problems of a history that could not be judged, by the names of their properties."""

SEED_WITHIN_S = 300.0
"""Real seconds: far more than any history takes on a machine that is busy."""
SEEDS_PER_PROCESS = 1000
"""Then it is replaced, so that what little each history may leave behind does not add up."""
SEEDS_PER_COLLECTION = 4
POLL_S = 1.0
END_WITHIN_S = 5.0

Play = Callable[..., HistoryOutcome]
"""`history.play`, or what stands in for it: a function of a module, called with a seed and `without`."""


class HistoryTask(NamedTuple):
    seed: int
    without: frozenset[int] = frozenset()
    """The numbers of the faults that are left out."""


class WorkerPool:
    """Up to `jobs` processes, started when they are needed. `hash_seed` is their PYTHONHASHSEED."""

    def __init__(
        self, play: Play, jobs: int, *, hash_seed: int | None = None, seed_within_s: float = SEED_WITHIN_S
    ) -> None:
        assert jobs > 0
        self.jobs = jobs
        self._play = play
        self._hash_seed = hash_seed
        self._seed_within_s = seed_within_s
        self._idle: list[_PoolWorker] = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._idle:
            self._idle.pop().end()

    def play(self, tasks: Iterable[HistoryTask]) -> Iterator[tuple[HistoryTask, HistoryOutcome]]:
        """The outcomes as they come. The next task is taken when a process is free for it, so that the caller can
        stop giving them."""
        left = iter(tasks)
        busy: dict[Connection[HistoryTask, HistoryOutcome], _PoolWorker] = {}
        try:
            while True:
                while len(busy) < self.jobs and (task := next(left, None)) is not None:
                    worker = self._take()
                    worker.begin(task)
                    busy[worker.connection] = worker
                if not busy:
                    return
                for ready in wait(list(busy), POLL_S):
                    worker = busy.pop(cast("Connection[HistoryTask, HistoryOutcome]", ready))
                    yield worker.task, self._settle(worker)
                for worker in [worker for worker in busy.values() if worker.busy_s > self._seed_within_s]:
                    del busy[worker.connection]
                    worker.end(at_once=True)
                    yield worker.task, _unjudged(worker.task, HUNG, f"no end after {self._seed_within_s:.0f} s")
        finally:
            for worker in busy.values():
                worker.end(at_once=True)

    def _take(self) -> _PoolWorker:
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.end()
        return _PoolWorker(self._play, self._hash_seed)

    def _settle(self, worker: _PoolWorker) -> HistoryOutcome:
        try:
            outcome: HistoryOutcome = worker.connection.recv()
        except (EOFError, OSError):
            worker.end()
            return _unjudged(worker.task, CRASH, _ending(worker.process.exitcode))
        if worker.tasks < SEEDS_PER_PROCESS:
            self._idle.append(worker)
        else:
            worker.end()
        return outcome


class _PoolWorker:
    def __init__(self, play: Play, hash_seed: int | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, play), daemon=True)
        with _deaf_to_ctrl_c(), _hash_seed_of(hash_seed):
            self.process.start()
        theirs.close()
        self.tasks = 0
        self.task = HistoryTask(-1)
        self._began = 0.0

    @property
    def busy_s(self) -> float:
        return time.monotonic() - self._began

    def begin(self, task: HistoryTask) -> None:
        self.task = task
        self.tasks += 1
        self._began = time.monotonic()
        # A process that died just now is met when its answer is read.
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def end(self, *, at_once: bool = False) -> None:
        """It ends by itself when the connection is closed."""
        self.connection.close()
        if at_once:
            self.process.kill()
        self.process.join(END_WITHIN_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(connection: Connection[HistoryOutcome, HistoryTask], play: Play) -> None:
    expect_abandoned()
    # A history is one heap of cycles that goes as a whole: nothing is gained by looking for garbage within it, or in modules.
    gc.disable()
    gc.freeze()
    # No parent, no work: EOFError when it waits for us, OSError when it went away meanwhile.
    with contextlib.suppress(EOFError, OSError):
        for number in itertools.count(1):
            task: HistoryTask = connection.recv()
            connection.send(_played(play, task))
            if number % SEEDS_PER_COLLECTION == 0:
                gc.collect()


def expect_abandoned() -> None:
    """A process that is killed awaits nothing any more: what it had begun to say is no mistake."""
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


def _played(play: Play, task: HistoryTask) -> HistoryOutcome:
    try:
        outcome = play(task.seed, without=task.without)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        return _unjudged(task, EXCEPTION, f"{type(error).__name__}: {error} ({where})")
    # Thousands of lines, which one more run of the seed shows again.
    outcome.transcript = []
    return outcome


def _unjudged(task: HistoryTask, problem: str, what: str) -> HistoryOutcome:
    return HistoryOutcome(task.seed, "", [], [Problem(problem, 0.0, what)], "", 0.0, 0, 0)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"by signal {signal.Signals(-code).name}"
    return f"with exit code {code}"


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """A process inherits what its parent's thread does not listen to: Ctrl-C is for the parent, which lets histories
    end."""
    resource_tracker.ensure_running()  # it would be started with the first process, and let the signal in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _hash_seed_of(hash_seed: int | None) -> Iterator[None]:
    """The only way to pass it to a new interpreter; ours has read its own long ago."""
    name = "PYTHONHASHSEED"
    before = os.environ.get(name)
    if hash_seed is not None:
        os.environ[name] = str(hash_seed)
    try:
        yield
    finally:
        if before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)
