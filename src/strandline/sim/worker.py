"""Work beside the event loop: a thread that runs only while it is given the turn, and gives it back where it waits.

Always true: of the loop and all workers exactly one runs at any time, so the seed decides how they interleave; a worker whose
process died never gets the turn again, and is unwound when the world ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class WorkAbandoned(BaseException):
    """The world ended while this work was waiting. Not an Exception: no handler of the work's own may take it for one."""


class Worker(Generic[T_co]):
    def __init__(self, work: Callable[[], T_co]) -> None:
        self._work = work
        self._turn = threading.Lock()
        self._back = threading.Lock()
        self._turn.acquire()
        self._back.acquire()
        self._thread: threading.Thread | None = None
        self._abandoned = False
        self._wait_s: float | None = None
        self._result: T_co
        self._failure: BaseException | None = None

    def step(self) -> float | None:
        """Let the work go on until it waits: for how long, in virtual seconds; None once it is done."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._turn.release()
        self._back.acquire()
        return self._wait_s

    def wait(self, seconds: float) -> None:
        """Called by the work: others run for this long."""
        self._wait_s = seconds
        self._back.release()
        self._turn.acquire()
        if self._abandoned:
            raise WorkAbandoned

    def result(self) -> T_co:
        if self._failure is not None:
            raise self._failure
        return self._result

    def abandon(self) -> None:
        """End work that waits, or never began."""
        if self._thread is not None and self._wait_s is not None:
            self._abandoned = True
            while self.step() is not None:
                pass

    def _run(self) -> None:
        self._turn.acquire()
        try:
            self._result = self._work()
        except BaseException as failure:
            self._failure = failure
        self._wait_s = None
        self._back.release()
