"""A second process that closes a node's connections when the node stands still.

A process that is frozen (stopped, hung on a device, swapped out) keeps its connections open: the system goes on acknowledging bytes
that are never read, and the clients that sent them wait for a timeout of half a minute. A client that sees its connection close
looks for another leader at once, and so does the controller. Until the node runs again, new connections are refused.

Always true: the watchdog does nothing as long as the node's event loop beats, and ends when the node does, however that ends. It
counts its own turns, not the clock: if both processes stood still, as when a machine sleeps, nothing is closed. A node that is busy
is left alone however long its loop takes (SEC-L1): one whose main thread runs, or would if it got a processor, is not frozen. Only
the main thread counts: threads beside a hung event loop may be as busy as they like.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

BEATS_PER_TIMEOUT = 8
BEAT, SUSPEND = b".", b"-"
"""The loop is alive; nothing is expected from now on."""
STDOUT, FIRST_FREE = 1, 3
"""Where the node logs, and the first descriptor after the standard ones."""
BUSY_SHARE = 0.25
"""A main thread that ran, or waited for a processor, for this share of the silent time is busy."""
_PIDFD_GETFD = 438
"""The system call, the same on every architecture."""
_PR_SET_PTRACER = 0x59616D61


class Watchdog:
    """The node's end of it."""

    def __init__(self, timeout_s: float, node_id: int) -> None:
        """Fork the watchdog. To be called before there is a thread or a loop."""
        self._interval_s = timeout_s / BEATS_PER_TIMEOUT
        reading, self._writing = os.pipe2(os.O_CLOEXEC)
        sys.stdout.flush()
        sys.stderr.flush()
        node_pid = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            # Nothing of the node's may live on in its watchdog: neither its log dirs' locks nor its parent's pipes.
            os.dup2(reading, FIRST_FREE)
            os.closerange(FIRST_FREE + 1, os.sysconf("SC_OPEN_MAX"))
            _watch(FIRST_FREE, node_pid, node_id, self._interval_s)
        os.close(reading)
        os.set_blocking(self._writing, False)
        # Where only its parents may look into a process, this child may too.
        _libc().prctl(_PR_SET_PTRACER, self.pid, 0, 0, 0)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Beat with the running loop from now on."""
        self._send(BEAT)
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self.start)

    def suspend(self) -> None:
        """The node is about to stop in order, which may take its time."""
        if self._timer is not None:
            self._timer.cancel()
        self._send(SUSPEND)

    def close(self) -> None:
        """The node has stopped."""
        os.close(self._writing)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _send(self, word: bytes) -> None:
        # Full: it is the watchdog that stands still. Broken: it is gone, and the node goes on without.
        with contextlib.suppress(OSError):
            os.write(self._writing, word)


def _watch(reading: int, node_pid: int, node_id: int, interval_s: float) -> NoReturn:
    """The life of the watchdog."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write(f"watchdog-{node_id}")
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    is_armed, silent, busy_s_before = False, 0, 0.0
    while True:
        if poll.poll(interval_s * 1000):
            words = os.read(reading, 4096)
            if not words:
                os._exit(0)
            is_armed, silent = words.endswith(BEAT), 0
        elif is_armed:
            if not silent:
                busy_s_before = busy_s(node_pid)
            silent += 1
            # The first of the silent turns is over when it is noticed, so one less was measured.
            measured_s = (silent - 1) * interval_s
            if silent >= BEATS_PER_TIMEOUT and busy_s(node_pid) - busy_s_before < BUSY_SHARE * measured_s:
                _close_connections(reading, node_pid, node_id, silent * interval_s)
                is_armed = False
            elif silent >= BEATS_PER_TIMEOUT:
                silent = 0  # busy so far: look at the next stretch by itself


def busy_s(pid: int) -> float:
    """For how long the main thread of a process has run or waited for a processor; 0 if the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
            ran_ns, waited_ns = map(int, file.read().split()[:2])
        return (ran_ns + waited_ns) / 1e9
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/task/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _close_connections(reading: int, node_pid: int, node_id: int, silent_s: float) -> None:
    """Close all connections, and refuse new ones, until the node beats again."""
    said = f"the node stood still for {silent_s:.1f} s"
    listening_sockets: list[socket.socket] = []
    try:
        sockets = tcp_sockets(node_pid)
        listening_sockets = [one for one in sockets if _listens(one)]
        closed = sum(_shut(one) for one in sockets if one not in listening_sockets)
        _say(node_id, f"{said}, so its connections were closed", closed)
        _refuse_connections(reading, listening_sockets)
    except OSError as error:
        _say(node_id, f"{said}, and its connections can't be closed: {error}", 0)
    finally:
        for listening in listening_sockets:
            listening.close()


def _refuse_connections(reading: int, listening_sockets: list[socket.socket]) -> None:
    poll = select.poll()
    by_descriptor = {listening.fileno(): listening for listening in listening_sockets}
    for descriptor in (reading, *by_descriptor):
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == reading:
                return
            with contextlib.suppress(OSError):
                by_descriptor[descriptor].accept()[0].close()


def _say(node_id: int, event: str, closed: int) -> None:
    line = {"event": event, "level": "warning", "timestamp": _timestamp(), "node": node_id, "closed": closed}
    os.write(STDOUT, json.dumps(line).encode() + b"\n")


def _timestamp() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def tcp_sockets(pid: int) -> list[socket.socket]:
    """Duplicates of every TCP socket that this process has. OSError if the system does not let us."""
    found = []
    process = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                    continue
            except FileNotFoundError:
                continue
            duplicate = socket.socket(fileno=_duplicate(process, int(name)))
            if duplicate.family in (socket.AF_INET, socket.AF_INET6) and duplicate.type == socket.SOCK_STREAM:
                found.append(duplicate)
            else:
                duplicate.close()
    finally:
        os.close(process)
    return found


def _listens(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _shut(one: socket.socket) -> bool:
    """Shut a connection down for both sides; False if there was none."""
    with one, contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
        return True
    return False


def _duplicate(process: int, descriptor: int) -> int:
    duplicate: int = _libc().syscall(_PIDFD_GETFD, process, descriptor, 0)
    if duplicate < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return duplicate


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
