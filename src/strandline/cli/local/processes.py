"""Processes that outlive the command that started them.

Always true: a process is identified by its pid, its start time and the boot id, so that a pid which the system has reused is
never mistaken for ours, nor sent a signal.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

POLL_S = 0.01
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class NodeProcess(NamedTuple):
    """The identity of a process; `started_ticks` counts from the boot with the id `boot_id`."""

    pid: int
    started_ticks: int
    boot_id: str

    @property
    def alive(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat == ("live", self.started_ticks) and boot_id() == self.boot_id

    def send(self, number: signal.Signals) -> None:
        """Send a signal if the process still runs."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


def identify(pid: int) -> NodeProcess:
    """The identity of a process that runs now."""
    stat = _stat(pid)
    return NodeProcess(pid, stat[1] if stat else 0, boot_id())


def boot_id() -> str:
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int] | None:
    """Whether a process is live or has ended (a zombie), and its start time; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the program's name in parentheses, which may hold spaces.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return ("ended" if fields[0] in (b"Z", b"X") else "live"), int(fields[19])


def age_s() -> float:
    """Seconds since this process was started, including the start of the interpreter."""
    stat = _stat(os.getpid())
    if stat is None:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - stat[1] / os.sysconf("SC_CLK_TCK")


def stop(
    processes: Sequence[NodeProcess], timeout_s: float, on_kill: Callable[[NodeProcess], None], reap: Callable[[], None]
) -> None:
    """Send SIGTERM to all, wait, and kill those that have not ended in time. `reap` lets a parent reap its children."""
    for process in processes:
        process.send(signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while any(process.alive for process in processes):
        if time.monotonic() > deadline:
            for process in processes:
                if process.alive:
                    on_kill(process)
                    process.send(signal.SIGKILL)
            deadline = float("inf")
        time.sleep(POLL_S)
        reap()
