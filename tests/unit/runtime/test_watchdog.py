"""The watchdog, with real processes: one that stands still has its connections closed, one that beats keeps them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strandline.runtime.watchdog import Watchdog, busy_s, tcp_sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog needs pidfd_getfd, which is Linux's")

TIMEOUT_S = 0.4
SPIN, HANG = b"spin", b"hang"
SPIN_S = 6 * TIMEOUT_S
PATIENCE_S = 20.0


@contextmanager
def node() -> Iterator[tuple[int, int]]:
    """A process with a watchdog that answers every connection with a greeting; its id and port."""
    listening = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if not pid:
        try:
            _serve(listening)
        finally:
            os._exit(0)
    port = listening.getsockname()[1]
    listening.close()
    try:
        yield pid, port
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(listening: socket.socket) -> None:
    watchdog = Watchdog(TIMEOUT_S, 1)

    async def main() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            while data := await reader.read(100):
                if data == SPIN:
                    _spin(SPIN_S)
                elif data == HANG:
                    busy = threading.Thread(target=_spin, args=(PATIENCE_S,), daemon=True)
                    busy.start()
                    busy.join()
                writer.write(data)

        watchdog.start()
        server = await asyncio.start_server(greet, sock=listening)
        await server.serve_forever()

    asyncio.run(main())


def _spin(seconds: float) -> None:
    """Work that does not let the event loop go on."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    connection.settimeout(PATIENCE_S)
    return connection


def test_a_node_that_stands_still_has_its_connections_closed_and_whoever_knocks_is_turned_away() -> None:
    with node() as (pid, port):
        connection = connect(port)
        assert connection.recv(5) == b"hello"
        os.kill(pid, signal.SIGSTOP)
        assert connection.recv(100) == b"", "closed, though the process can't have done it"
        another = connect(port)
        assert another.recv(100) == b"", (
            "the system takes connections for a frozen process; the watchdog does not keep them"
        )
        os.kill(pid, signal.SIGCONT)
        # It serves again: a connection that came while it was frozen may still be turned away.
        while (greeting := connect(port).recv(5)) != b"hello":
            assert greeting == b""


def test_a_node_that_beats_keeps_its_connections() -> None:
    with node() as (_, port):
        connection = connect(port)
        assert connection.recv(5) == b"hello"
        for _ in range(3):
            connection.settimeout(TIMEOUT_S)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        connection.settimeout(PATIENCE_S)
        connection.sendall(b"still there")
        assert connection.recv(100) == b"still there"


def test_a_node_that_is_busy_keeps_its_connections_however_long_it_takes() -> None:
    with node() as (_, port):
        busy, other = connect(port), connect(port)
        assert (busy.recv(5), other.recv(5)) == (b"hello", b"hello")
        busy.sendall(SPIN)
        assert busy.recv(100) == SPIN, "it was silent for several timeouts, and worked"
        other.sendall(b"still there")
        assert other.recv(100) == b"still there"


def test_a_node_whose_event_loop_hangs_is_frozen_though_another_thread_is_busy() -> None:
    with node() as (_, port):
        connection = connect(port)
        assert connection.recv(5) == b"hello"
        connection.sendall(HANG)
        assert connection.recv(100) == b""


def test_a_node_that_is_stopped_after_it_was_busy_is_frozen() -> None:
    with node() as (pid, port):
        connection = connect(port)
        assert connection.recv(5) == b"hello"
        connection.sendall(SPIN)
        assert connection.recv(100) == SPIN
        os.kill(pid, signal.SIGSTOP)
        assert connection.recv(100) == b""


def test_the_time_of_a_process_that_is_gone_is_none() -> None:
    assert busy_s(os.getpid()) > 0
    assert busy_s(2**22 + 1) == 0.0


def test_it_sees_the_tcp_sockets_of_a_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = tcp_sockets(os.getpid())
        assert listening.getsockname() in [one.getsockname() for one in found]
        for one in found:
            one.close()


def test_it_ends_with_its_node() -> None:
    watchdog = Watchdog(TIMEOUT_S, 1)
    watchdog.close()
    with pytest.raises(ProcessLookupError):
        os.kill(watchdog.pid, 0)
