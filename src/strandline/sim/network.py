"""The network between simulated hosts: who listens, who is connected, how long bytes take, and what is cut.

Faults are TCP's own: a cut holds bytes (one way or both) and ends, if it lasts, in a timeout; a reset loses all but a prefix
of the bytes in flight, or of an answer; a host that lost power says nothing at all until it is back, and then resets. Bytes
of an old connection may arrive after those of a new one, because each connection has its own delays.

Always true: a node's name is its host name; nothing here depends on the order of a set.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import itertools
import os
import random
import socket
from collections.abc import Callable

from strandline.sim.context import NODE, ProcessState, SimProcess
from strandline.sim.link import OWN_HOST, NetworkLink
from strandline.sim.loop import SimLoop
from strandline.sim.pipe import Pipe
from strandline.sim.server import SimListener, SimServer
from strandline.sim.transport import SimTransport, poison

__all__ = ["Network", "NetworkLink", "poison"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})
FIRST_EPHEMERAL_PORT = 32768


class Network:
    def __init__(self, loop: SimLoop, seed: int | str) -> None:
        self.loop = loop
        self.randomness = random.Random(f"{seed}/network")
        self.default_link = NetworkLink()
        self.choppy_probability = 0.25
        """How many connections deliver writes in pieces, or joined; the others deliver them as they were made."""
        self.split_probability = 0.3
        self.hold_probability = 0.05
        self.hold_s_max = 0.001
        self.empty_read_probability = 0.05
        self.give_up_s = 30.0
        """How long TCP retransmits before a connection times out."""
        self.retransmit_max_s = 1.0
        self.connect_timeout_s = 60.0
        self.tap: Callable[[Pipe, bytes], None] | None = None
        """Called with all bytes as they leave a host, whether or not they will arrive. It must not change the world."""
        self.stalled: dict[Pipe, None] = {}
        self.hosts: dict[str, None] = {loop.outside.name: None}
        self.is_whole = True
        """Nothing is cut and no host is dark."""
        self._down: set[str] = set()
        self._cuts: set[tuple[str, str]] = set()
        self._links: dict[tuple[str, str], NetworkLink] = {}
        self._listeners: dict[tuple[str, int], SimListener] = {}
        self._transports: dict[SimTransport, None] = {}
        self._ports = itertools.count(FIRST_EPHEMERAL_PORT)
        self._numbers = itertools.count()
        loop.network = self

    # Shape and faults

    def link(self, source: str, target: str) -> NetworkLink:
        return OWN_HOST if source == target else self._links.get((source, target), self.default_link)

    def set_link(self, source: str, target: str, link: NetworkLink) -> None:
        """For one direction; connections take it up with their next bytes."""
        self._links[source, target] = link

    def slow_link(self, one: str, other: str, latency_s: float = 0.1, bytes_per_s: float = 375_000.0) -> None:
        """Both ways between two hosts: 100 ms and 3 Mbit/s, if nothing else is said."""
        slow = NetworkLink(latency_s, jitter_s=latency_s / 10, bytes_per_s=bytes_per_s)
        self._links[one, other] = self._links[other, one] = slow

    def restore_link(self, one: str, other: str) -> None:
        self._links.pop((one, other), None)
        self._links.pop((other, one), None)

    def restore_links(self) -> None:
        self._links.clear()

    def is_cut(self, source: str, target: str) -> bool:
        return source != target and ((source, target) in self._cuts or source in self._down or target in self._down)

    def cut_one_way(self, source: str, target: str) -> None:
        """Nothing from `source` reaches `target`; the other way, bytes arrive but are never acknowledged."""
        self._cuts.add((source, target))
        self.is_whole = False

    def cut(self, one: str, other: str) -> None:
        self._cuts.update([(one, other), (other, one)])
        self.is_whole = False

    def isolate(self, name: str) -> None:
        for host in self.hosts:
            if host != name:
                self.cut(name, host)

    def heal(self, one: str, other: str) -> None:
        self._cuts.difference_update([(one, other), (other, one)])
        self._retry_stalled()

    def heal_all(self) -> None:
        self._cuts.clear()
        self._retry_stalled()

    def connections(self, one: str, other: str) -> int:
        """How many there are between two hosts."""
        return len(self._clients(one, other))

    def reset_connections(self, one: str, other: str) -> int:
        """Reset every connection between two hosts, each after any prefix of its bytes; how many there were."""
        clients = self._clients(one, other)
        for client in clients:
            client.break_off()
        return len(clients)

    def lose_replies(self, one: str, other: str) -> int:
        """Each connection between two hosts is reset once the server has answered on it, before the answer has arrived.

        A request that is being answered is done, and its client has to ask again. How many connections there were.
        """
        clients = self._clients(one, other)
        for client in clients:
            client.lose_replies()
        return len(clients)

    def delay_bytes(self, one: str, other: str, by_s: float) -> int:
        """Nothing arrives for so long on the connections that there are between two hosts; a new one is not held up.

        So what a client gave up waiting for arrives after what it sent on its next connection. How many there were.
        """
        clients = self._clients(one, other)
        for client in clients:
            client.delay_bytes(self.loop.time() + by_s)
        return len(clients)

    def _clients(self, one: str, other: str) -> list[SimTransport]:
        """The client's end of each connection between two hosts."""
        hosts = {one, other}
        return [t for t in self._transports if t.is_client and not t.gone and {t.host, t.peer_host} == hosts]

    def power_off(self, host: str) -> None:
        self._down.add(host)
        self.is_whole = False

    def power_on(self, host: str) -> None:
        self._down.discard(host)
        self._retry_stalled()

    def cut_ports(self, process: SimProcess, *, silently: bool) -> None:
        """A process dies: its listeners vanish, and its connections end at the peers."""
        for address in [a for a, listener in self._listeners.items() if listener.process is process]:
            del self._listeners[address]
        for transport in [t for t in self._transports if t.process is process]:
            del self._transports[transport]
            if not transport.gone:
                transport.die(silently)

    def _retry_stalled(self) -> None:
        self.is_whole = not self._cuts and not self._down
        for pipe in list(self.stalled):
            pipe.heal()

    # asyncio's interface, called through the loop

    async def create_server(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int | None, backlog: int, start: bool
    ) -> SimServer:
        process = NODE.get(self.loop.outside)
        if host is not None and host not in LOOPBACK and host not in ANY_ADDRESS and host != process.name:
            raise OSError(errno.EADDRNOTAVAIL, f"{process.name} cannot listen on {host}")
        number = port or next(self._ports)
        listener = SimListener(factory, contextvars.copy_context(), process, (host or "0.0.0.0", number), backlog)
        server = SimServer(self.loop, self._listeners, (process.name, number), listener)
        if (process.name, number) in self._listeners:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {process.name}:{number}")
        if start:
            await server.start_serving()
        return server

    async def create_connection(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        process = NODE.get(self.loop.outside)
        target = process.name if host in LOOPBACK or host in ANY_ADDRESS else host
        if target not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {host}")
        connected: asyncio.Future[SimTransport] = self.loop.create_future()
        attempt = _Attempt(
            process, contextvars.copy_context(), target, port, connected, self.loop.time() + self.connect_timeout_s
        )
        self._send_syn(attempt)
        transport = await connected
        protocol = factory()
        transport.start(protocol)
        return transport, protocol

    def _send_syn(self, attempt: _Attempt) -> None:
        link = self.link(attempt.process.name, attempt.target)
        self.loop.schedule(self.loop.time() + link.draw_latency(self.randomness), self._syn_arrives, attempt)

    def _syn_arrives(self, attempt: _Attempt) -> None:
        """The kernel of the listening host answers: also for a process that is paused, until its backlog is full."""
        source, target = attempt.process.name, attempt.target
        if attempt.connected.done() or attempt.process.state is ProcessState.DEAD:
            return
        listener = self._listeners.get((target, attempt.port))
        cut = self.is_cut(source, target) or self.is_cut(target, source)
        if cut or (listener is not None and listener.waiting >= listener.backlog):
            self._retry_syn(attempt)
            return
        back = self.loop.time() + self.link(target, source).draw_latency(self.randomness)
        self.loop.trace.record(b"conn" if listener else b"refu", self.loop.time(), attempt.port, target.encode())
        if listener is None:
            error = ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ({target!r}, {attempt.port})")
            self.loop.schedule(back, attempt.fail, error)
        else:
            self.loop.schedule(back, attempt.succeed, self._connect(attempt, listener))

    def _retry_syn(self, attempt: _Attempt) -> None:
        again = self.loop.time() + attempt.next_retry_s
        attempt.next_retry_s *= 2
        if again > attempt.deadline:
            error = TimeoutError(errno.ETIMEDOUT, f"Connect call failed ({attempt.target!r}, {attempt.port})")
            self.loop.schedule(attempt.deadline, attempt.fail, error)
        else:
            self.loop.schedule(again, self._syn_arrives, attempt)

    def _connect(self, attempt: _Attempt, listener: SimListener) -> SimTransport:
        number = next(self._numbers)
        source, target = attempt.process.name, attempt.target
        is_choppy = self.randomness.random() < self.choppy_probability
        there = Pipe(self, 2 * number, source, target, is_choppy)
        back = Pipe(self, 2 * number + 1, target, source, is_choppy)
        client_address, server_address = (source, next(self._ports)), (target, attempt.port)
        client = SimTransport(attempt.process, attempt.context, there, back, client_address, server_address)
        server = SimTransport(listener.process, listener.context, back, there, server_address, client_address)
        client.is_client = True
        there.writer = back.reader = client
        there.reader = back.writer = server
        there.back, back.back = back, there
        self._transports[client] = self._transports[server] = None
        listener.arrive(self.loop, server)
        return client

    def forget(self, transport: SimTransport) -> None:
        self._transports.pop(transport, None)


class _Attempt:
    """A connect under way."""

    def __init__(
        self,
        process: SimProcess,
        context: contextvars.Context,
        target: str,
        port: int,
        connected: asyncio.Future[SimTransport],
        deadline: float,
    ) -> None:
        self.process = process
        self.context = context
        self.target = target
        self.port = port
        self.connected = connected
        self.deadline = deadline
        self.next_retry_s = 1.0

    def fail(self, error: OSError) -> None:
        if not self.connected.done():
            self.connected.set_exception(error)

    def succeed(self, transport: SimTransport) -> None:
        if not self.connected.done():
            self.connected.set_result(transport)
        elif not transport.gone:
            transport.abort()  # the caller has given up
