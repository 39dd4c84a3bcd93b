"""The child process that does a node's slow work: the last in line for the processor and the disk.

It receives one work after the other over a socket, and answers with the result. Functions go by their names and
values as pickles; both ends are ours, of the same version, and nothing that came from a network is among them.

Always true: it dies with its parent, also in the middle of work. The system kills it (Linux), and a thread that does
nothing but listen ends it when the socket closes; one that was made too late to notice finds that its parent is
another.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from strandline.runtime.disk import FileDisk
from strandline.runtime.niced import FRAME, PickledError, frame

NICENESS = 19
BURST_S = 0.1
"""So much time's worth of bytes may go through at once."""
_PR_SET_PDEATHSIG = 1
_IOPRIO_WHO_PROCESS, _IOPRIO_CLASS_IDLE = 1, 3 << 13
_SYS_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}


def main(fd: int, parent_pid: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    _die_with(parent_pid)
    _come_last()
    connection = socket.socket(fileno=fd)
    works: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, works), daemon=True).start()
    disk = FileDisk()
    while True:
        connection.sendall(_answer(disk, works.get()))


def _answer(disk: FileDisk, asked: bytes) -> bytes:
    try:
        work, argument, bytes_per_second = pickle.loads(asked)  # from our parent
        return frame((True, work(disk, BytePacer(bytes_per_second).pace, argument)))
    except Exception as error:
        try:
            return frame((False, PickledError.of(error)))
        except Exception:  # it holds something that can't cross over
            return frame((False, PickledError.of(RuntimeError(f"{type(error).__name__}: {error}"))))


class BytePacer:
    """Bytes over time, by the clock: what was not used is not saved up for longer than a moment."""

    def __init__(
        self,
        bytes_per_second: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._now = now
        self._sleep = sleep
        self._free_at = now()

    def pace(self, size_bytes: int) -> None:
        now = self._now()
        self._free_at = max(self._free_at, now - BURST_S) + size_bytes / self._bytes_per_second
        if self._free_at > now:
            self._sleep(self._free_at - now)


def _listen(connection: socket.socket, works: queue.SimpleQueue[bytes]) -> None:
    """Hand over what the parent asks for. When it is gone, so are we: not even a `finally` may write any more."""
    try:
        while True:
            size = int.from_bytes(_exactly(connection, FRAME), "big")
            works.put(_exactly(connection, size))
    finally:
        os._exit(0)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _die_with(parent_pid: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(0)  # it died before the line above


def _come_last() -> None:
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    number = _SYS_IOPRIO_SET.get(os.uname().machine)
    if sys.platform == "linux" and number is not None:
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_CLASS_IDLE)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
