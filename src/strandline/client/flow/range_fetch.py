"""Fetching a range of a partition: the core's requests sent one ahead of what the caller works on.

While the caller works on a piece, the next Fetch is at its leader, and its answer on the way into the socket.

Always true: at most one Fetch is in flight, on a lane that no other request uses meanwhile; an answer that no caller
waits for any more goes with its connection.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.client.config import ConsumerConfig
from strandline.client.core.cluster_metadata import LeaderMetadata
from strandline.client.core.connection import RawReply
from strandline.client.core.range_fetch import FETCH, FetchedBytes, RangeCall, RangeFetch
from strandline.client.errors import Closed, OffsetOutOfRange, UnsupportedApi
from strandline.client.flow.channel import Channel
from strandline.client.flow.client import FlowClient
from strandline.client.flow.io import Future, Operation, sleep
from strandline.client.flow.offsets import EARLIEST, LATEST, list_offsets
from strandline.errors import KafkaError
from strandline.ids import Uuid

BOUNDS_TIMEOUT_MS = 5_000
"""To ask where a log begins and ends, for the sake of an error's text."""


class _Pending(NamedTuple):
    call: RangeCall
    channel: Channel
    future: Future[RawReply]
    timeout_s: float


class RangeFetcher:
    def __init__(
        self,
        client: FlowClient,
        topic: str,
        partition: int,
        start: int,
        end: int,
        config: ConsumerConfig,
        *,
        topic_id: Uuid | None = None,
        timeout_s: float = 120,
    ) -> None:
        self._client = client
        self._io = client.io
        self._request_timeout_s = (config.request_timeout_ms + config.fetch_max_wait_ms) / 1000
        self._core = RangeFetch(
            client.cluster,
            topic,
            partition,
            start,
            end,
            config,
            topic_id=topic_id,
            timeout_s=timeout_s,
            frame_bytes_max=client.config.frame_bytes_max,
            backoff=client.config.retry_backoff,
            randomness=client.randomness,
        )
        self._lane = client.take_lane()
        self._pending: _Pending | None = None
        self._is_closed = False

    def next(self) -> Operation[FetchedBytes | None]:
        """The next piece; None at the end of the range."""
        # Time begins anew here, not in the coroutine: before its first step a scheduler may find that time is over.
        self._core.wait_from(self._io.now())
        if self._pending is not None:
            self._pending.channel.wait_anew(self._pending.timeout_s)
        return self._next()

    async def _next(self) -> FetchedBytes | None:
        core = self._core
        while not core.is_done:
            if self._pending is None:
                await self._ask()
                continue
            fetched = await self._receive(self._pending)
            if fetched is not None:
                self._ask_ahead()
                return fetched
        return None

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if self._pending is not None:
                self._client.close_lane(self._lane)
            self._client.give_back_lane(self._lane)

    async def _receive(self, pending: _Pending) -> FetchedBytes | None:
        try:
            reply = await pending.future
        except KafkaError as error:
            _check_worth(error)
            self._core.lost(error, self._io.now())
            return None
        except BaseException:  # the wait is broken off, and the answer still to come
            self._client.close_lane(self._lane)
            raise
        finally:
            self._pending = None
        try:
            return self._core.answered(pending.call, reply, self._io.now())
        except OffsetOutOfRange as error:
            bounded = await self._with_bounds(error)
            if not bounded.is_in_bounds:
                raise bounded from None
            # The broker that said so leads no longer, and does not have what came since.
            self._core.lost(error, self._io.now())
            return None

    async def _ask(self) -> None:
        """One step towards a request in flight: wait, learn who leads, connect, send."""
        core, now = self._core, self._io.now()
        patience_s = core.patience_s(now)
        if core.retry_at > now:
            await sleep(self._io, min(core.retry_at - now, patience_s))
            return
        if core.wants_metadata:
            await self._refresh()
            return
        leader = core.leader()
        if leader is None:
            return
        try:
            channel = await self._client.channel(leader.node_id, self._lane)
            self._send(leader, channel, min(patience_s, self._request_timeout_s))
        except KafkaError as error:
            _check_worth(error)
            core.lost(error, self._io.now())

    def _ask_ahead(self) -> None:
        """At once if nothing stands in the way; `next` does what else is needed."""
        core, now = self._core, self._io.now()
        if core.is_done or core.wants_metadata or core.retry_at > now:
            return
        leader = core.leader()
        channel = None if leader is None else self._client.open_channel(leader.node_id, self._lane)
        if leader is not None and channel is not None:
            try:
                self._send(leader, channel, self._request_timeout_s)
            except KafkaError as error:
                core.lost(error, now)

    def _send(self, leader: LeaderMetadata, channel: Channel, timeout_s: float) -> None:
        call = self._core.request(leader)
        future = channel.send_for_raw(FETCH, call.message, timeout_s, version_max=call.version_max)
        self._pending = _Pending(call, channel, future, timeout_s)

    async def _refresh(self) -> None:
        core = self._core
        try:
            await self._client.refresh([core.topic])
        except KafkaError as error:
            _check_worth(error)
            core.metadata_lost(error, self._io.now())
        else:
            core.metadata_changed(self._io.now())

    async def _with_bounds(self, error: OffsetOutOfRange) -> OffsetOutOfRange:
        """The same, with the log's bounds if its leader, as it is known now, answers."""
        key = (error.topic, error.partition)
        try:
            await self._client.refresh([error.topic])
            bounds = [
                (await list_offsets(self._client, {key: special}, timeout_ms=BOUNDS_TIMEOUT_MS))[key]
                for special in (EARLIEST, LATEST)
            ]
        except KafkaError:
            return error
        if any(isinstance(bound, KafkaError) for bound in bounds):
            return error
        start, end = (bound.offset for bound in bounds if not isinstance(bound, KafkaError))
        return OffsetOutOfRange(error.topic, error.partition, error.offset, start, end)


def _check_worth(error: KafkaError) -> None:
    """Raise what trying again does not help."""
    if isinstance(error, Closed | UnsupportedApi) or not error.retriable:
        raise error
