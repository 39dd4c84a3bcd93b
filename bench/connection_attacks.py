"""What strangers do with connections: open many, send too much, read nothing, never finish.

Each attack is a generator: it is under way at its `yield`, and undone after it. It runs in a process of its own.

Always true: only loopback is attacked, with bounded means; every limit that it shows is cited by its rule.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from bench.raw_peer import API_VERSIONS, FETCH, HOST, METADATA, SIZE, RawPeer, all_topics, closing, fetch

LARGE_TOPIC, LARGE_RECORD_BYTES = "large", 900_000
"""A topic that the bench has filled with records of this size."""
FRAME_BYTES = 99_000_000


class Target(NamedTuple):
    port: int
    tls_port: int
    http_port: int


class Attack(NamedTuple):
    name: str
    rule: str
    begin: Callable[[Target], AbstractContextManager[None]]


@contextmanager
def idle(target: Target, count: int = 10_000) -> Iterator[None]:
    """Connections that say nothing."""
    with closing([RawPeer(target.port) for _ in range(count)]):
        yield


@contextmanager
def one_byte(target: Target, count: int = 2_000) -> Iterator[None]:
    """Connections that begin a request."""
    with closing([RawPeer(target.port) for _ in range(count)]) as peers:
        for peer in peers:
            peer.send(b"\0")
        yield


@contextmanager
def stalled_frames(target: Target, count: int = 300) -> Iterator[None]:
    """A little more than a megabyte of a request that claims to have 99, and nothing after it."""
    with closing([]) as peers:
        for _ in range(count):
            peers.append(RawPeer(target.port, timeout_s=0.5))
            with contextlib.suppress(OSError):  # it is not read on
                peers[-1].send(SIZE.pack(FRAME_BYTES) + bytes(1_200_000))
        yield


@contextmanager
def never_reads(target: Target, count: int = 300) -> Iterator[None]:
    """Fetches of all there is, and a small window."""
    with closing([]) as peers:
        for _ in range(count):
            peers.append(RawPeer(target.port, receive_bytes=4096))
            peers[-1].send(peers[-1].request(FETCH, 12, fetch(LARGE_TOPIC)) * 20)
        yield


@contextmanager
def pipelined(target: Target, api_key: int, version: int, body: bytes | None, count: int = 8) -> Iterator[None]:
    """Requests as fast as they are taken; the answers are read."""
    stop = threading.Event()

    def send(peer: RawPeer, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while not stop.is_set():
                peer.send(data)

    def read(peer: RawPeer) -> None:
        with contextlib.suppress(OSError):
            while not stop.is_set() and peer.socket.recv(1 << 20):
                pass

    with ExitStack() as stack:
        peers = stack.enter_context(closing([RawPeer(target.port, timeout_s=2.0) for _ in range(count)]))
        for peer in peers:
            one = peer.request(METADATA, 9, all_topics()) if body is None else peer.frame(api_key, version, body)
            data = one * max(1, 256 * 1024 // len(one))
            for work, arguments in ((send, (peer, data)), (read, (peer,))):
                thread = threading.Thread(target=work, args=arguments, daemon=True)
                thread.start()
                stack.callback(thread.join, 5.0)
        stack.callback(stop.set)
        yield


def pipelined_metadata(target: Target) -> AbstractContextManager[None]:
    return pipelined(target, METADATA, 9, None)


def pipelined_api_versions(target: Target) -> AbstractContextManager[None]:
    return pipelined(target, API_VERSIONS, 0, b"")


@contextmanager
def pipelined_unread(target: Target, count: int = 50) -> Iterator[None]:
    """Requests as many as are taken; no answer is read."""
    with closing([]) as peers:
        for _ in range(count):
            peers.append(RawPeer(target.port, receive_bytes=4096, timeout_s=0.2))
            data = peers[-1].request(METADATA, 9, all_topics()) * 2_000
            with contextlib.suppress(OSError):
                for _ in range(20):
                    peers[-1].send(data)
        yield


@contextmanager
def silent_handshakes(target: Target, count: int = 300) -> Iterator[None]:
    """Connections to the TLS listener that never say hello."""
    with closing([RawPeer(target.tls_port) for _ in range(count)]):
        yield


@contextmanager
def slow_http(target: Target, count: int = 200) -> Iterator[None]:
    """HTTP requests that never end."""
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.create_connection((HOST, target.http_port), 5.0))
            with contextlib.suppress(OSError):
                one.sendall(b"GET /he")
        yield


@contextmanager
def broken_frames(target: Target, count: int = 500) -> Iterator[None]:
    """Sizes that can't be, bytes that mean nothing, connections that are reset half way."""
    reset = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    for number in range(count):
        peer = RawPeer(target.port)
        with contextlib.suppress(OSError):
            peer.send(
                (SIZE.pack(-1), SIZE.pack(0), b"GET / HTTP/1.1\r\n\r\n", SIZE.pack(5000) + os.urandom(100))[number % 4]
            )
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        peer.close()
    yield


ATTACKS = [
    Attack("10,000 idle connections", "SEC-L6", idle),
    Attack("2,000 that sent one byte", "SEC-L6", one_byte),
    Attack("300 stalled frames of 99 MB", "SEC-L4", stalled_frames),
    Attack("300 Fetches whose answers are not read", "SEC-L3", never_reads),
    Attack("50 x pipelined Metadata, unread", "SEC-L3", pipelined_unread),
    Attack("8 x pipelined Metadata", "SEC-L1", pipelined_metadata),
    Attack("8 x pipelined ApiVersions", "SEC-L1", pipelined_api_versions),
    Attack("300 silent TLS handshakes", "SEC-T14", silent_handshakes),
    Attack("200 endless HTTP requests", "SEC-H4", slow_http),
    Attack("500 broken frames", "SEC-L1", broken_frames),
]
