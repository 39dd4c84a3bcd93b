"""A client of one cluster: connections to its brokers, and what is known of it.

Connections are opened when first needed and shared; each node may have several lanes, so that a Fetch that waits for
records does not hold up everything behind it. An address that failed is left alone for a while that grows with each
failure.

Always true: metadata is asked of a broker that is known, and of the bootstrap addresses when none of those answers; at
most one connection per node and lane is open or being opened; at most one Metadata request is in flight.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from strandline.client.config import ClientConfig
from strandline.client.core.addresses import Address, show
from strandline.client.core.backoff import delay_s
from strandline.client.core.cluster_metadata import METADATA, ClusterMetadata
from strandline.client.core.connection import ClientConnection
from strandline.client.errors import Closed, ConnectionLost, MismatchedEndpoint, NoBrokerReachable
from strandline.client.flow.channel import Channel
from strandline.client.flow.io import Condition, Io, sleep
from strandline.errors import KafkaError
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse
    from strandline.wire.stubs.metadata import MetadataRequest, MetadataResponse

R = TypeVar("R", bound="ApiResponse")

VOTE = 52
"""An API that only controllers serve."""
MAIN, FETCHING = 0, 1
"""Lanes that all share. `new_lane` makes others, for requests that wait so long that no other may stand behind them."""


class _Key(NamedTuple):
    """Whose connection: of a node on a lane, or of a bootstrap address (node -1)."""

    node_id: int
    lane: int
    address: Address


class FlowClient:
    def __init__(self, io: Io, bootstrap: list[Address], config: ClientConfig, randomness: random.Random) -> None:
        self.io = io
        self.config = config
        self.randomness = randomness
        self.cluster = ClusterMetadata()
        self.is_closed = False
        self._bootstrap = list(bootstrap)
        self.on_closed: list[Callable[[int], None]] = []
        """Called with the node to which a connection has closed: it may be gone."""
        self._lanes_count = 2
        self._free_lanes: list[int] = []
        self._channels: dict[_Key, Channel] = {}
        self._opening: dict[_Key, Condition] = {}
        self._failures: dict[Address, tuple[int, float]] = {}
        """By address: failures in a row, and the time before which it is not tried again."""
        self._refreshing: Condition | None = None
        self._refreshed_at = float("-inf")
        self._Metadata = messages.request(METADATA)

    # Requests

    async def request(
        self,
        node_id: int | None,
        api_key: int,
        message: ApiRequest[R],
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: int = MAIN,
    ) -> R:
        """One request and its reply; `None` is any broker. Nothing is tried again: ConnectionLost is the caller's."""
        channel = await (self.any_channel() if node_id is None else self.channel(node_id, lane))
        timeout_s = (self.config.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return await channel.send(api_key, message, timeout_s, version_max=version_max, version_min=version_min)

    def open_channel(self, node_id: int, lane: int = MAIN) -> Channel | None:
        """The connection to this node, if there is one."""
        broker = self.cluster.brokers.get(node_id)
        return None if broker is None else self._channels.get(_Key(node_id, lane, broker.address))

    async def channel(self, node_id: int, lane: int = MAIN) -> Channel:
        broker = self.cluster.brokers.get(node_id)
        if broker is None:
            raise ConnectionLost(f"node {node_id} is not a broker that the cluster has named")
        return await self._open(_Key(node_id, lane, broker.address))

    def new_lane(self) -> int:
        self._lanes_count += 1
        return self._lanes_count - 1

    def take_lane(self) -> int:
        """A lane for one's own use, with the connections that the last one left open there."""
        return self._free_lanes.pop() if self._free_lanes else self.new_lane()

    def give_back_lane(self, lane: int) -> None:
        """Nothing is in flight on it."""
        self._free_lanes.append(lane)

    def close_lane(self, lane: int) -> None:
        """Requests that wait for an answer there fail with ConnectionLost."""
        for key, channel in list(self._channels.items()):
            if key.lane == lane:
                channel.close()

    def is_failing(self, node_id: int) -> bool:
        """It could not be reached a moment ago, and the time to try again has not come."""
        broker = self.cluster.brokers.get(node_id)
        return broker is not None and self._failures.get(broker.address, (0, 0.0))[1] > self.io.now()

    async def any_channel(self) -> Channel:
        """A connection to some broker: an open one, else one that is known, else a bootstrap address."""
        self._check_open()
        open_channels = [c for key, c in self._channels.items() if key.lane == MAIN]
        if open_channels:
            return min(open_channels, key=lambda channel: channel.in_flight_count)
        errors: list[str] = []
        for key in self._candidates():
            try:
                return await self._open(key)
            except KafkaError as error:
                self._check_open()
                errors.append(error.message)
        addresses = list(dict.fromkeys(show(key.address) for key in self._candidates()))
        raise NoBrokerReachable(addresses, errors[-1] if errors else "no address")

    def _candidates(self) -> list[_Key]:
        known = [_Key(broker.node_id, MAIN, broker.address) for broker in self.cluster.brokers.values()]
        self.randomness.shuffle(known)
        # Addresses that failed lately come last; a stable sort keeps the rest in their random order.
        known.sort(key=lambda key: self._failures.get(key.address, (0, 0.0))[0])
        seen = {key.address for key in known}
        return known + [_Key(-1, MAIN, address) for address in self._bootstrap if address not in seen]

    async def _open(self, key: _Key) -> Channel:
        while True:
            self._check_open()
            channel = self._channels.get(key)
            if channel is not None:
                return channel
            opening = self._opening.get(key)
            if opening is None:
                return await self._open_new(key)
            await opening.wait()

    async def _open_new(self, key: _Key) -> Channel:
        opening = self._opening[key] = Condition(self.io)
        channel: Channel | None = None
        try:
            failures, retry_at = self._failures.get(key.address, (0, 0.0))
            await sleep(self.io, retry_at - self.io.now())
            self._check_open()
            channel = Channel(
                self.io, key.address, ClientConnection(self.config.client_id, self.config.frame_bytes_max), self._closed
            )
            try:
                await channel.open(self.config.connection_setup_timeout_ms / 1000)
            except KafkaError:
                wait_s = delay_s(self.config.reconnect_backoff, failures + 1, self.randomness)
                self._failures[key.address] = (failures + 1, self.io.now() + wait_s)
                raise
            self._failures.pop(key.address, None)
            self._check_open()
            self.cluster.learn_features(channel.features)
            self._channels[key] = channel
            return channel
        finally:
            if channel is not None and self._channels.get(key) is not channel:
                channel.close()
            del self._opening[key]
            opening.notify_all()

    def _closed(self, channel: Channel) -> None:
        for key, open_channel in list(self._channels.items()):
            if open_channel is channel:
                del self._channels[key]
                for callback in list(self.on_closed):
                    callback(key.node_id)

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = (), *, allow_auto_topic_creation: bool = False) -> None:
        """Ask for these topics (None: all). One broker after another, each once; NoBrokerReachable if none answers."""
        wanted = None if topics is None else sorted(set(topics))
        while self._refreshing is not None:
            await self._refreshing.wait()
        self._refreshing = Condition(self.io)
        try:
            response = await self._ask_metadata(wanted, allow_auto_topic_creation)
            self.cluster.update(response, is_complete=topics is None)
            self._refreshed_at = self.io.now()
        finally:
            refreshing, self._refreshing = self._refreshing, None
            refreshing.notify_all()

    async def _ask_metadata(self, topics: list[str] | None, allow_auto_topic_creation: bool) -> MetadataResponse:
        Metadata = self._Metadata
        named = None if topics is None else [Metadata.MetadataRequestTopic(name=name) for name in topics]
        message = Metadata(topics=named, allow_auto_topic_creation=allow_auto_topic_creation)
        # Every broker that is open may turn out to be dead; after those, any_channel opens others or says that none
        # answers.
        for _ in range(len(self._channels) + 1):
            channel = await self.any_channel()
            try:
                return await self._send_metadata(channel, message)
            except ConnectionLost:
                continue
        channel = await self.any_channel()
        return await self._send_metadata(channel, message)

    async def _send_metadata(self, channel: Channel, message: MetadataRequest) -> MetadataResponse:
        if channel.serves(VOTE) and not channel.serves(METADATA):
            raise MismatchedEndpoint(show(channel.address), is_controller=True)
        return await channel.send(METADATA, message, self.config.request_timeout_ms / 1000)

    async def ensure_known(self) -> None:
        """Brokers at least; once is enough until the metadata is too old."""
        if not self.cluster.brokers or self.io.now() - self._refreshed_at > self.config.metadata_max_age_ms / 1000:
            await self.refresh(self.cluster.topics)

    async def ensure_topics(self, topics: Iterable[str]) -> None:
        """Metadata of these topics, asking only if some are not known or all is too old."""
        wanted = set(topics)
        is_old = self.io.now() - self._refreshed_at > self.config.metadata_max_age_ms / 1000
        if is_old or not wanted <= self.cluster.topics.keys():
            await self.refresh(wanted | self.cluster.topics.keys())

    async def close(self) -> None:
        """Close every connection; waiting requests fail."""
        self.is_closed = True
        for channel in list(self._channels.values()):
            channel.close()

    def _check_open(self) -> None:
        if self.is_closed:
            raise Closed("client")
