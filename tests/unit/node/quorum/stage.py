"""Members of a quorum on simulated hosts: real Quorums, real peers, and a server of the quorum's APIs on each."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from strandline.api import (
    add_raft_voter,
    api_versions,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch_metadata_log,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import PendingReply
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord, TopicRecord
from strandline.node.peers import Peers
from strandline.node.quorum.election_file import QUORUM_STATE
from strandline.node.quorum.quorum import Quorum
from strandline.raft.election_state import decode
from strandline.runtime.logging import JsonLogger
from strandline.sim.disk import SimDisk
from strandline.sim.world import World
from strandline.wire import messages
from strandline.wire.headers import API_VERSIONS, read_request_header, response_header

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
DIRECTORY = "/data/__cluster_metadata-0"
PORT = 9093
APIS = {
    api.KEY: api
    for api in (
        vote,
        begin_quorum_epoch,
        end_quorum_epoch,
        fetch_metadata_log,
        fetch_snapshot,
        describe_quorum,
        add_raft_voter,
        remove_raft_voter,
        update_raft_voter,
    )
}


T = TypeVar("T")
Slot = list[Any]
"""A request's header, its outcome, the bytes of its reply once they are there, and the request."""


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=Uuid.draw(random.Random(name)))


def adding(*names: str) -> Callable[[MetadataImage], tuple[list[MetadataRecord], list[str]]]:
    """A decision that adds topics and answers with those that it saw."""
    return lambda image: ([topic(name) for name in names], sorted(image.topics))


def directory_id(node_id: int) -> Uuid:
    return Uuid(bytes(8) + bytes([1]) + bytes(6) + bytes([node_id]))


def asked_in_epoch(request: Any) -> int:
    """The epoch that a Vote, BeginQuorumEpoch or EndQuorumEpoch claims; -1 of any other request."""
    if isinstance(request, messages.request(vote.KEY)):
        return int(request.topics[0].partitions[0].replica_epoch)
    if isinstance(request, (messages.request(begin_quorum_epoch.KEY), messages.request(end_quorum_epoch.KEY))):
        return int(request.topics[0].partitions[0].leader_epoch)
    return -1


class Server(asyncio.Protocol):
    """One connection to a member. Replies leave in the order of the requests."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._data = b""
        self._slots: list[Slot] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        for slot in self._slots:
            if isinstance(slot[1], PendingReply):
                slot[1].cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            frame, self._data = self._data[4:end], self._data[end:]
            header = read_request_header(frame)
            request = messages.decode_request(header.api_key, header.api_version, frame, header.body_position)
            outcome = self._member.handle(header.api_key, header.api_version, request)
            slot = [header, outcome, None, request]
            self._slots.append(slot)
            if isinstance(outcome, PendingReply):
                outcome.deliver_to(partial(self._deliver, slot))
            else:
                self._deliver(slot, outcome)

    def _deliver(self, slot: Slot, reply: Any) -> None:
        header = slot[0]
        self._member.check_reply(slot[3], reply)
        key, version = header.api_key, header.api_version
        body = response_header(key, version, header.correlation_id) + messages.encode_response(key, version, reply)
        slot[2] = struct.pack(">i", len(body)) + body
        while self._slots and self._slots[0][2] is not None:
            reply = self._slots.pop(0)[2]
            if not self._transport.is_closing():  # else nobody is there to read it
                self._transport.write(reply)


class Member:
    """A node of the quorum, over its lives."""

    def __init__(self, stage: Stage, node_id: int, *, roles: str = "controller") -> None:
        self.stage = stage
        self.id = node_id
        self.roles = roles
        self.host = stage.world.node(f"n{node_id}")
        self.host.disk.mkdir("/data")
        self.host.disk.sync_dir("/")
        self.failures: list[str] = []
        self.lines: list[str] = []
        self.applied: list[MetadataImage] = []
        self.actives: list[int | None] = []
        self.on_active: Callable[[Any, int], Awaitable[None]] | None = None
        self.quorum: Any = None

    @property
    def disk(self) -> SimDisk:
        return self.host.disk

    def config(self) -> NodeConfig:
        listener = f"CONTROLLER://n{self.id}:{PORT}" if self.roles == "controller" else f"PLAINTEXT://n{self.id}:9092"
        texts = {
            "node.id": str(self.id),
            "process.roles": self.roles,
            "controller.listener.names": "CONTROLLER",
            "listeners": listener,
            "log.dirs": "/data",
            **self.stage.settings,
        }
        return NodeConfig.build(of(texts), insecure=True)

    def start(self) -> asyncio.Task[None]:
        """In a process of its own; done when it takes part."""
        return self.host.spawn(self._start())

    async def _start(self) -> None:
        config = self.config()
        host = self.host
        logger = JsonLogger(self.lines.append, 20)
        self.peers = Peers(DynamicConfig(config), host.clock, host.randomness, logger, self._closed)
        self.applied, self.actives = [], []
        self.quorum = quorum = Quorum(
            config,
            host.disk,
            host.clock,
            host.randomness,
            logger,
            self.peers,
            cluster_id=CLUSTER_ID,
            directory_id=directory_id(self.id),
            clean=False,
            on_failed=self.failures.append,
            on_active=self._on_active,
            on_inactive=lambda: self.actives.append(None),
            on_leader_changed=lambda: None,
        )
        await quorum.open()
        controller = SimpleNamespace(quorum=quorum)
        broker = SimpleNamespace(controller=controller, cluster_id=CLUSTER_ID, node_id=self.id, clock=host.clock)
        self._broker: Any = broker
        loop = asyncio.get_running_loop()
        if self.roles == "controller":
            await loop.create_server(lambda: Server(self), f"n{self.id}", PORT)
        self.running = loop.create_task(quorum.run(self._apply))

    async def stop(self) -> None:
        await self.quorum.resign_and_close()
        self.running.cancel()
        await self.peers.close()

    def _closed(self, node_id: int, purpose: object) -> None:
        if self.quorum is not None:
            self.quorum.disconnected(node_id)

    async def _apply(self, image: MetadataImage) -> None:
        await asyncio.sleep(0)
        self.applied.append(image)

    async def _on_active(self, epoch: int) -> None:
        self.actives.append(epoch)
        if self.on_active is not None:
            await self.on_active(self.quorum, epoch)

    def handle(self, api_key: int, version: int, request: Any) -> Any:
        if api_key == API_VERSIONS:
            R = messages.response(API_VERSIONS)
            served = {key: api.VERSIONS for key, api in APIS.items()} | {API_VERSIONS: api_versions.VERSIONS}
            return R(
                api_keys=[
                    R.ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
                    for key, versions in served.items()
                ],
                supported_features=[R.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)],
            )
        loop = asyncio.get_running_loop()
        ctx = RequestContext(self._broker, api_key, version, "test", "CONTROLLER", "peer", loop)
        return APIS[api_key].handle(request, ctx)

    def check_reply(self, request: Any, reply: Any) -> None:
        """Whoever is told of an epoch or a vote may rely on it: they are on the device (D1)."""
        said = [p for topic in getattr(reply, "topics", []) for p in topic.partitions if hasattr(p, "leader_epoch")]
        if not said or not said[0].leader_epoch:
            return
        state = decode(self.text(QUORUM_STATE))
        if state.epoch < said[0].leader_epoch == asked_in_epoch(request):
            # Refused in the epoch of the one who asks: neither a leader nor a vote is claimed for it (SEC-Z16).
            assert said[0].leader_id == -1, "a leader that is not saved"
            assert not getattr(said[0], "vote_granted", False), "a vote that is not saved"
            return
        assert state.epoch >= said[0].leader_epoch, "an epoch that is not saved"
        if isinstance(request, messages.request(vote.KEY)) and said[0].vote_granted:
            asked = request.topics[0].partitions[0]
            assert asked.pre_vote or (state.voted is not None and state.voted.id == asked.replica_id), (
                "a vote that is not saved"
            )

    @property
    def topics(self) -> list[str]:
        return sorted(self.quorum.committed.topics)

    def text(self, name: str) -> bytes:
        found = self.disk.peek(f"{DIRECTORY}/{name}")
        assert found is not None, name
        return found

    def files(self, suffix: str) -> list[str]:
        return [name for name in self.disk.listdir(DIRECTORY) if name.endswith(suffix)]


class Stage:
    def __init__(self, world: World, count: int, settings: Mapping[str, str] | None = None) -> None:
        self.world = world
        voters = ",".join(f"{i}@n{i}:{PORT}" for i in range(1, count + 1))
        self.settings = {"controller.quorum.voters": voters, **(settings or {})}
        self.members = [Member(self, i) for i in range(1, count + 1)]

    async def start(self) -> None:
        for member in self.members:
            await member.start()

    @property
    def living(self) -> list[Member]:
        return [member for member in self.members if member.host.alive]

    async def until(self, fits: Callable[[], T], timeout_s: float = 30.0) -> T:
        """What `fits` returns, once that is true."""
        async with asyncio.timeout(timeout_s):
            while True:
                if found := fits():
                    return found
                await asyncio.sleep(0.002)

    async def active(self) -> Member:
        member = await self.until(lambda: next((m for m in self.living if m.quorum.is_active), None))
        assert member is not None
        return member

    def on(self, member: Member, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run on that member's host."""
        return member.host.spawn(coroutine)

    async def decide(self, *names: str) -> Any:
        """On whoever is active, as a broker does that tries again."""
        while True:
            member = await self.active()
            try:
                return await self.on(member, member.quorum.decide(adding(*names)))
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise

    async def agreed(self, names: Iterable[str], members: Sequence[Member] | None = None) -> None:
        """Until all who live have exactly these topics."""
        wanted = sorted(names)
        await self.until(lambda: all(m.topics == wanted for m in members or self.living))


def play(
    story: Callable[[Stage], Awaitable[object]],
    *,
    count: int = 3,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    start: bool = True,
) -> Stage:
    """Run a story on a stage of so many controllers."""
    with World(seed) as world:
        stage = Stage(world, count, settings)

        async def main() -> None:
            if start:
                await stage.start()
            await story(stage)
            for member in stage.members:
                assert not member.failures, (member.id, member.failures, member.lines[-5:])

        world.run(main())
        return stage
