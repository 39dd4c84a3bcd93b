"""Work in niced child processes: started when there is something to do, ended when there was nothing for a while.

Always true: a child has one work at a time; a work that is cancelled is over, its process dead, before its caller goes on; a child
that ends by itself is a WorkLost for its caller, and the next work gets a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

from strandline.ports import A, Disk, Pace, WorkLost

T = TypeVar("T")
IDLE_S = 60.0
"""A child that had nothing to do for so long is ended: it has memory of its own."""
READ_BYTES = 64 * 1024
FRAME = 8
"""Bytes of the length before each frame."""


def frame(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(FRAME, "big") + data


class PickledError(NamedTuple):
    """An error on its way from one process to the other. Most could not be made again by their own constructors."""

    kind: type[Exception]
    args: tuple[object, ...]
    state: dict[str, object]

    @classmethod
    def of(cls, error: Exception) -> PickledError:
        args = error.__reduce__()[1] if isinstance(error, OSError) else error.args  # with its paths
        assert isinstance(args, tuple)
        return cls(type(error), args, error.__dict__)

    def error(self) -> Exception:
        if issubclass(self.kind, OSError):
            error: Exception = self.kind(*self.args)
        else:
            error = self.kind.__new__(self.kind, *self.args)
            error.args = self.args
        error.__dict__.update(self.state)
        return error


class _Child:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._connection = ours
        self.leaving: asyncio.TimerHandle | None = None
        """While it rests: when it will be ended."""
        with contextlib.ExitStack() as unused, theirs:
            unused.callback(ours.close)
            # By the thread that lives as long as this process: the system kills the child when the thread that made it ends.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "strandline.runtime.niced_child", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            unused.pop_all()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, asked: bytes) -> bytes:
        """EOFError or OSError if it is gone."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._connection, asked)
        data = bytearray()
        size = FRAME
        while len(data) < size:
            part = await loop.sock_recv(self._connection, READ_BYTES)
            if not part:
                raise EOFError
            data += part
            if size == FRAME and len(data) >= FRAME:
                size = FRAME + int.from_bytes(data[:FRAME], "big")
        return bytes(data[FRAME:])

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        """Until it is dead: how it ended. Blocks, for a moment."""
        return self._process.wait()

    def close(self) -> None:
        """No work will be sent to it any more."""
        self.kill()
        self._connection.close()


class NicedProcesses:
    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()

    async def run(self, work: Callable[[Disk, Pace, A], T], argument: A, bytes_per_second: float) -> T:
        asked = frame((work, argument, bytes_per_second))
        child = self._take()
        try:
            answer = await child.ask(asked)
        except (EOFError, ConnectionError):
            status = child.wait()
            raise WorkLost(f"the process that ran {work.__name__} ended with status {status}") from None
        except asyncio.CancelledError:
            child.kill()
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, child.wait))
            raise
        else:
            self._rest(child)
        finally:
            self._busy.discard(child)
            if child.leaving is None:
                child.close()
        is_done, result = pickle.loads(answer)  # from our own child
        if not is_done:
            raise result.error()
        return cast(T, result)

    def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            assert child.leaving is not None
            child.leaving.cancel()
            child.leaving = None
            if child.is_alive:
                break
            child.close()
        else:
            try:
                child = _Child()
            except OSError as error:  # too many processes or files, or no memory: of the disk it says nothing
                raise WorkLost(f"no process could be started: {error}") from error
        self._busy.add(child)
        return child

    def _rest(self, child: _Child) -> None:
        self._idle.append(child)
        child.leaving = asyncio.get_running_loop().call_later(self._idle_s, self._dismiss, child)

    def _dismiss(self, child: _Child) -> None:
        with contextlib.suppress(ValueError):
            self._idle.remove(child)
            child.close()
            child.wait()

    def close(self) -> None:
        """End them all, also those at work."""
        for child in self._busy:
            child.kill()
            child.wait()
        for child in self._idle:
            assert child.leaving is not None
            child.leaving.cancel()
            child.close()
            child.wait()
        self._idle.clear()
