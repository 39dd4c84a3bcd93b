"""Forked child processes, which share the modules that their parent has imported.

Always true: the child never returns into its parent's code, gets no signal that was sent to its parent's process group, has its
own session and none of its parent's open files; its output goes to its log.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

DEFERRED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Blocked during the fork; the parent gets them afterwards."""


class ForkedChild:
    """A child process; only its parent can read its exit code."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == self.pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


def fork(run: Callable[[], int], log_path: str, name: str) -> ForkedChild:
    """Run `run` in a child, with its result as the exit code. No thread and no event loop may exist yet."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED_SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _be_child(run, log_path, name)
        return ForkedChild(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_child(run: Callable[[], int], log_path: str, name: str) -> NoReturn:
    code = 1
    try:
        _leave_parent(log_path, name)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)


def _leave_parent(log_path: str, name: str) -> None:
    os.setsid()
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2:
            try:
                os.close(number)
            except OSError:  # the listing itself was one of them
                pass
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)
    # The parent's streams belong to its terminal or pipes.
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, DEFERRED_SIGNALS)
    with open("/proc/self/comm", "w") as file:
        file.write(name)
