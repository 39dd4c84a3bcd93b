"""The channel of a node to the active controller, whichever node that is now.

A request waits until a leader of the quorum is known, goes to it, and goes on to the next one when it turns out not to
be the controller: it says so (NOT_CONTROLLER), there is no connection to it, or another leader is known before it
answered.

Always true: a request that may have reached a controller is sent again only if its caller said that this is safe
(`retry`); requests of one purpose go over one connection, in their order; every request ends by its deadline.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.node.logger import Logger
from strandline.node.peers import ConnectionLost, NotSent, Peer, Peers, UnsupportedApi
from strandline.raft.messages import Address
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")
T = TypeVar("T")

ENVELOPE: Final = 58
CONTROL, FORWARD = "control", "forward"
"""Purposes: what keeps a broker alive never waits behind what a client had forwarded."""
FORWARD_TIMEOUT_S = 60.0
"""Unless the waiting request gives up before."""
BACKOFF_DOUBLINGS_MAX = 2
"""From `controller.quorum.retry.backoff.ms` on: a new controller is found within a moment, so the pauses stay short."""

top_level_error: Callable[[ApiResponse], int] = attrgetter("error_code")
"""Where nearly every response says that it is a refusal."""


class ControllerChannel:
    def __init__(
        self,
        peers: Peers,
        leader: Callable[[], tuple[int, int, Address | None]],
        config: NodeConfig,
        randomness: random.Random,
        logger: Logger,
    ) -> None:
        """`leader` returns the quorum's epoch, its leader's id (-1: none is known) and where that listens for
        controllers."""
        self._peers = peers
        self._leader = leader
        self._backoff_s = config.controller_quorum_retry_backoff_ms / 1000
        self._randomness = randomness
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[asyncio.Future[None], None] = {}

    def leader_changed(self) -> None:
        """To be called whenever `leader` returns something new: waiting requests look again."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def ask(
        self,
        api_key: int,
        message: ApiRequest[R],
        timeout_s: float,
        *,
        retry: bool = False,
        error_of: Callable[[ApiResponse], int] = top_level_error,
        purpose: str = CONTROL,
        version_max: int | None = None,
    ) -> R:
        """The active controller's reply. KafkaError: REQUEST_TIMED_OUT if there was none in time, UnsupportedApi, or
        ConnectionLost if the request may have been done and `retry` is not set."""
        deadline = self._loop.time() + timeout_s
        why = "no leader of the quorum is known"
        attempts = 0
        while True:
            epoch, node_id, address = self._leader()
            left_s = deadline - self._loop.time()
            if left_s <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer from the active controller in time: {why}")
            if node_id < 0 or address is None:
                await self._pause(left_s)
                continue
            peer = self._peers.connection(node_id, address, purpose)
            try:
                response = await self._ask_leader(peer, epoch, api_key, message, left_s, retry, version_max)
            except NotSent as error:
                why = error.message
            except ConnectionLost as error:
                if not retry:
                    raise
                why = error.message
            else:
                if response is None:
                    continue  # there is another leader: ask it at once
                if error_of(response) != ErrorCode.NOT_CONTROLLER:
                    return response
                why = f"node {node_id} is not the controller"
            if self._leader()[:2] == (epoch, node_id):
                doubled = self._backoff_s * 2 ** min(attempts, BACKOFF_DOUBLINGS_MAX)
                await self._pause(min(doubled * self._randomness.uniform(0.5, 1.0), deadline - self._loop.time()))
            attempts += 1

    async def _ask_leader(
        self,
        peer: Peer,
        epoch: int,
        api_key: int,
        message: ApiRequest[R],
        timeout_s: float,
        retry: bool,
        version_max: int | None,
    ) -> R | None:
        """The reply, or None if the request may be sent again and there is a new leader before it was answered."""
        if not retry:
            return await peer.ask(api_key, message, timeout_s, version_max=version_max)
        asking = self._loop.create_task(peer.ask(api_key, message, timeout_s, version_max=version_max))
        asking.add_done_callback(_look_at)
        try:
            while not asking.done():
                await self._change_or(asking)
                now_epoch, node_id, address = self._leader()
                if not asking.done() and now_epoch != epoch and address is not None and node_id != peer.node_id:
                    return None
            return asking.result()
        finally:
            asking.cancel()

    async def _pause(self, timeout_s: float) -> None:
        """Until the time is over, or the leader is another."""
        await self._change_or(timeout_s=max(0.0, timeout_s))

    async def _change_or(self, *others: asyncio.Future[Any], timeout_s: float | None = None) -> None:
        """Until the leader is another, one of the others is done, or the time is over."""
        changed: asyncio.Future[None] = self._loop.create_future()
        self._waiters[changed] = None
        try:
            await asyncio.wait((changed, *others), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiters.pop(changed, None)  # one that is cancelled waits no longer either

    async def forward(
        self, frame: bytes, principal: bytes, client_host: bytes, timeout_s: float = FORWARD_TIMEOUT_S
    ) -> bytes:
        """Have the active controller handle a client's request: header and body go in, response header and body come
        out.

        KafkaError is about the envelope, not about the request in it. As in Kafka, a request is sent again when the
        connection is lost: what it asked for may then be there already, and its answer says so.
        """
        envelope = messages.request(ENVELOPE)(
            request_data=frame, request_principal=principal, client_host_address=client_host
        )
        try:
            response = await self.ask(ENVELOPE, envelope, timeout_s, retry=True, purpose=FORWARD)
        except UnsupportedApi as error:
            # Not the client's version is unknown there, but the envelope itself.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self._logger.warning("the controller refused a forwarded request", error=code.name)
            raise KafkaError(code, "the active controller refused a forwarded request")
        if response.response_data is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the active controller answered nothing")
        return bytes(response.response_data)


def _look_at(asking: asyncio.Task[T]) -> None:
    """It may fail just when its reply is not wanted any more: then its error is looked at here."""
    if not asking.cancelled():
        asking.exception()
