"""Connections from this node to others, one for each node and purpose: a slow request delays only those of its own
purpose.

A connection is opened when it is first used, kept, and opened again by the next request after it ended. There is one
attempt at a time, which all who wait share; how often to try again is theirs to decide, but attempts never begin closer
together than `ATTEMPT_INTERVAL_S`.

Always true: every `ask` ends, with the reply, with NotSent if the request never left, or with ConnectionLost; requests
leave in the order of their asks; `on_closed` is called once for each open connection that the other side, the network
or an overdue reply ended, and never for one that this node chose to close: idle, moved to another address, or stopping.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from strandline.client.aio import AsyncioIo
from strandline.client.core.addresses import show
from strandline.client.core.connection import ClientConnection
from strandline.client.errors import ConnectionLost, UnsupportedApi
from strandline.client.flow.channel import Channel
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.errors import KafkaError
from strandline.node.logger import Logger
from strandline.node.peer_tls import context_to
from strandline.ports import Clock
from strandline.raft.messages import Address

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

ATTEMPT_INTERVAL_S = 0.01
"""Against a caller that asks again at once, and a peer that refuses at once. At random up to double, so that nodes that
lost the same peer do not dial it in step."""
IDLE_SHARE = 0.9
"""Of `connections.max.idle.ms`: the other side has the same limit, and a connection that it closes counts as lost."""

__all__ = ["ConnectionLost", "NotSent", "Peer", "Peers", "UnsupportedApi"]


class NotSent(ConnectionLost):
    """There was no connection, and the request never left: it may be sent again whatever it asks for."""


class Peers:
    def __init__(
        self,
        config: DynamicConfig,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        on_closed: Callable[[int, str], None],
        on_opened: Callable[[int], None] = lambda node_id: None,
    ) -> None:
        self._config = config
        self.on_closed = on_closed
        self.on_opened = on_opened
        self.randomness = randomness
        self.logger = logger
        self.is_closed = False
        self._clock = clock
        self._peers: dict[tuple[int, str], Peer] = {}
        self._ios: dict[str, AsyncioIo] = {}
        self._io(self.config.controller_listener_names[0])  # a key that can't be read fails the start

    @property
    def config(self) -> NodeConfig:
        return self._config.current

    def connection(self, node_id: int, address: Address, purpose: str, *, listener: str | None = None) -> Peer:
        """The connection to that node for that purpose. `listener` is the name under which it listens there: the first
        of `controller.listener.names` unless given. If the node was elsewhere before, the connection to there is
        closed."""
        peer = self._peers.get((node_id, purpose))
        if peer is None:
            io = self._io(listener or self.config.controller_listener_names[0])
            peer = self._peers[node_id, purpose] = Peer(self, io, node_id, address, purpose)
        elif peer.address != address:
            peer.move(address)
        return peer

    def _io(self, listener: str) -> AsyncioIo:
        io = self._ios.get(listener)
        if io is None:
            tls = context_to(self.config, listener)
            io = self._ios[listener] = AsyncioIo(asyncio.get_running_loop(), self._clock, tls)
        return io

    async def close(self) -> None:
        """End every connection and every `ask`; there will be no others."""
        self.is_closed = True
        attempts = [attempt for peer in self._peers.values() if (attempt := peer.close()) is not None]
        await asyncio.gather(*attempts, return_exceptions=True)


class Peer:
    """The way to one node for one purpose."""

    def __init__(self, peers: Peers, io: AsyncioIo, node_id: int, address: Address, purpose: str) -> None:
        self.node_id = node_id
        self.address = address
        self.purpose = purpose
        self._peers = peers
        self._io = io
        self._channel: Channel | None = None
        self._attempt: asyncio.Task[Channel | str] | None = None
        self._attempt_at = float("-inf")
        self._failures = 0
        """Attempts in a row that came to nothing."""
        self._used_at = io.now()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def is_open(self) -> bool:
        return self._channel is not None

    async def ask(self, api_key: int, message: ApiRequest[R], timeout_s: float, *, version_max: int | None = None) -> R:
        """The reply, in the newest version that both speak. If it does not come in time the connection is given up, and
        what else is in flight with it; UnsupportedApi if the two have no version in common."""
        deadline = self._loop.time() + timeout_s
        channel = self._channel or await self._open_channel(timeout_s)
        left_s = deadline - self._loop.time()
        reply = cast("asyncio.Future[R]", channel.send(api_key, message, left_s, version_max=version_max))
        # The channel looks at its deadlines in the order of its requests; this one may be due before an earlier one.
        overdue = self._loop.call_later(left_s, self._give_up, channel)
        try:
            return await reply
        finally:
            overdue.cancel()
            self._used_at = self._loop.time()
            if reply.done() and not reply.cancelled():
                reply.exception()  # a caller that is cancelled in the moment in which it failed does not look at it any more

    def _give_up(self, channel: Channel) -> None:
        channel.close(ConnectionLost(f"node {self.node_id} at {show(self.address)} did not answer in time"))

    async def _open_channel(self, timeout_s: float) -> Channel:
        if self._peers.is_closed:
            raise NotSent("this node is stopping")
        if self._attempt is None:
            self._attempt = self._loop.create_task(self._open())
        attempt = self._attempt
        # Not awaited itself: a caller that is cancelled here must not take the attempt away from the others.
        await asyncio.wait([attempt], timeout=timeout_s)
        if not attempt.done():
            raise NotSent(f"no connection to node {self.node_id} at {show(self.address)} in time")
        outcome = "its address changed, or this node is stopping" if attempt.cancelled() else attempt.result()
        if isinstance(outcome, str):
            raise NotSent(outcome)
        if outcome.is_closed:
            raise NotSent(f"node {self.node_id} at {show(self.address)} closed the connection")
        return outcome

    async def _open(self) -> Channel | str:
        """One attempt: the open channel, or why there is none."""
        try:
            interval_s = ATTEMPT_INTERVAL_S * self._peers.randomness.uniform(1, 2)
            await asyncio.sleep(max(0.0, self._attempt_at + interval_s - self._loop.time()))
            self._attempt_at = self._loop.time()
            client_id = f"strandline-{self._peers.config.node_id}-{self.purpose}"
            channel = Channel(self._io, self.address, ClientConnection(client_id), self._channel_closed)
            try:
                await channel.open(self._setup_timeout_s())
            except (
                KafkaError,
                ValueError,
                OverflowError,
            ) as error:  # what others call a host and a port may be neither
                self._failures += 1
                return error.message if isinstance(error, KafkaError) else str(error)
            except asyncio.CancelledError:
                channel.close()
                raise
            if channel.is_closed:
                return f"node {self.node_id} at {show(self.address)} closed the connection"
            self._channel = channel
            self._failures = 0
            self._peers.on_opened(self.node_id)
            self._used_at = self._loop.time()
            self._check_idle()
            return channel
        finally:
            if self._attempt is asyncio.current_task():
                self._attempt = None

    def _setup_timeout_s(self) -> float:
        """Twice as long after each failure, as a slow link may need it."""
        config = self._peers.config
        doubled_ms: float = config.socket_connection_setup_timeout_ms * 2.0 ** min(self._failures, 16)
        return min(doubled_ms, config.socket_connection_setup_timeout_max_ms) / 1000

    def _check_idle(self) -> None:
        """Close the connection after a long silence, else look again when it could have been long enough."""
        limit_s = self._peers.config.connections_max_idle_ms / 1000 * IDLE_SHARE
        if self._channel is None or limit_s < 0:
            return
        now = self._loop.time()
        if self._channel.in_flight_count:
            self._used_at = now
        idle_s = now - self._used_at
        if idle_s >= limit_s:
            self._end()
        else:
            self._idle_timer = self._loop.call_later(max(limit_s - idle_s, ATTEMPT_INTERVAL_S), self._check_idle)

    def _channel_closed(self, channel: Channel) -> None:
        if channel is not self._channel:
            return  # it never was open, or we closed it
        self._forget_channel()
        self._peers.logger.info("a connection to a node closed", peer=self.node_id, purpose=self.purpose)
        self._peers.on_closed(self.node_id, self.purpose)

    def _forget_channel(self) -> None:
        self._channel = None
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end(self) -> None:
        """Close the connection because we want to: it is not reported as closed."""
        channel = self._channel
        self._forget_channel()
        if channel is not None:
            channel.close()

    def move(self, address: Address) -> None:
        self.close()
        self.address = address
        self._attempt_at = float("-inf")

    def close(self) -> asyncio.Task[Channel | str] | None:
        """End the connection, and the attempt to open one, which is returned: its end can be waited for."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.cancel()
        self._end()
        return attempt
