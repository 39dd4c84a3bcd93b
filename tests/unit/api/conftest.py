"""A small broker of real parts: a real image, real logs on a real disk, and decisions that are committed at once."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from strandline.api.access.controller import ControllerAccess
from strandline.api.access.hosted_partitions import HostedPartitions
from strandline.api.cluster.metadata_updates import SentMetadata
from strandline.api.cluster.topic_bytes import TopicBytes
from strandline.api.context import Connections, FetchResources, NodeContext, ReplicaFetchResources, RequestContext
from strandline.api.fetching.fetch_sessions import FetchSessions
from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.api.fetching.shared_reads import SharedReads
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.requests.request_stats import RequestStats
from strandline.api.transactions.marker_writing import MarkerWriter
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.controller.liveness import Liveness
from strandline.controller.producer_ids import allocate
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.log.verification_guards import NOT_REQUIRED
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from strandline.metadata.replay import replay
from strandline.node.coordinator import offsets_topic, transaction_topic
from strandline.node.coordinator.dependencies import NodeGroupDependencies
from strandline.node.coordinator.groups import GroupCoordinator
from strandline.node.coordinator.runner import RunnerDependencies
from strandline.node.coordinator.topic import CoordinatorTopic
from strandline.node.coordinator.transactions import NodeTransactionDependencies, TransactionCoordinator
from strandline.node.events import Events
from strandline.node.image_watch import ImageWatch
from strandline.node.producer_ids import ProducerIds
from strandline.node.signals import MarkerSignals
from strandline.node.transactions.access import NodeTransactions
from strandline.node.transactions.broker_requests import BrokerRequests
from strandline.node.transactions.marker_sender import MarkerSender
from strandline.node.transactions.verifier import TransactionVerifier
from strandline.ports import Clock, Disk
from strandline.raft import events
from strandline.raft.effects import SendResponse
from strandline.raft.messages import RaftFetchResponse, Request, Response
from strandline.records.batch import BatchBuilder
from strandline.replica.partition import Partition
from strandline.runtime.clock import SystemClock
from strandline.runtime.disk import FileDisk
from strandline.runtime.logging import JsonLogger
from strandline.sliced_work import finished
from strandline.wire import messages
from strandline.wire.fetch import FetchPartition
from tests.unit.raft.bench import Bench

from .surroundings import Surroundings

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
LISTENER = "PLAINTEXT"
PATIENCE_S = 2.0
"""Longer than a Fetch is parked."""


def dir_id(node_id: int) -> Uuid:
    return Uuid(bytes(8) + bytes([1]) + bytes(6) + bytes([node_id]))


def registration(
    node_id: int,
    *,
    fenced: bool = False,
    listener: str = LISTENER,
    rack: str | None = None,
    epoch: int | None = None,
) -> Any:
    return r.RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=Uuid(bytes([node_id]) * 16),
        broker_epoch=node_id if epoch is None else epoch,
        end_points=(
            r.BrokerEndpoint(name=listener, host=f"host{node_id}", port=9090 + node_id, security_protocol=0),
            r.BrokerEndpoint(name="OTHER", host=f"other{node_id}", port=9190 + node_id, security_protocol=0),
        ),
        rack=rack,
        fenced=fenced,
        log_dirs=(dir_id(node_id),),
    )


class NoOtherBrokers(BrokerRequests):
    """This broker is alone."""

    def __init__(self) -> None:
        pass

    async def ask(self, broker_id: int, api_key: int, message: Any, timeout_s: float) -> Any:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "there is no other broker")


class BlockOfProducerIds(ProducerIds):
    """As the node has them, of blocks that the test's controller gives."""

    def __init__(self, allocate: Callable[[], Awaitable[int]]) -> None:
        self._allocate = allocate
        self._ids: list[int] = []

    @property
    def at_hand(self) -> bool:
        return bool(self._ids)

    def take(self) -> int | None:
        return self._ids.pop() if self._ids else None

    async def await_one(self) -> None:
        if not self._ids:
            self._ids.append(await self._allocate())


class LoneVoter:
    """A quorum of one: a real Raft on a log in memory, whose time passes when nothing else can happen."""

    is_active = True
    committed = MetadataImage()

    def __init__(self) -> None:
        self.bench = Bench((1,), me=1)
        self.bench.flush()

    @property
    def leader(self) -> tuple[int, int]:
        return self.bench.raft.epoch, self.bench.raft.leader_id

    @property
    def kraft_version(self) -> int:
        return self.bench.raft.kraft_version

    def submit(self, request: Request, answer: Callable[[Response], None]) -> None:
        effects = self.bench.step(events.Received(request, answer))
        for effect in (*effects, *self.bench.wait(PATIENCE_S)):
            if isinstance(effect, SendResponse):
                response = effect.response
                if isinstance(response, RaftFetchResponse) and response.read_from is not None:
                    records = self.bench.log.read(response.read_from, 1 << 20)
                    response = response._replace(read_from=None, records=records)
                effect.answer(response)

    def cancel(self, answer: Callable[[Response], None]) -> None:
        self.bench.step(events.Cancelled(answer))

    def describe(self) -> Any:
        return self.bench.raft.describe(self.bench.now)


class SettableMetadata:
    """The metadata of a TestBroker, as its APIs see it."""

    def __init__(self, broker: TestBroker) -> None:
        self._broker = broker

    def image(self) -> MetadataImage:
        return self._broker.image

    async def until(self, fits: Callable[[MetadataImage], bool], timeout_s: float) -> None:
        await self._broker.watch.until(fits, timeout_s)

    def suspects(self) -> frozenset[int]:
        return self._broker.suspects

    def departed(self) -> frozenset[int]:
        return self._broker.departed


class TestBroker:
    """Node 1 of a cluster, and what it takes to call its APIs."""

    __test__ = False

    def __init__(self, disk: Disk, root: str, settings: Mapping[str, str] = {}, clock: Clock | None = None) -> None:
        self.root = root
        self.disk = disk
        self.randomness = random.Random(1)
        self.clock = clock or SystemClock()
        texts = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "listeners": f"{LISTENER}://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "log.dirs": root,
            **settings,
        }
        self.image = MetadataImage()
        self.committed: list[r.MetadataRecord] = []
        self.controller_error: KafkaError | None = None
        self.storage_errors: list[Partition] = []
        self.online = {root: True}
        self.unopened: set[tuple[str, int]] = set()
        self.suspects: frozenset[int] = frozenset()
        self.departed: frozenset[int] = frozenset()
        self.beside: list[asyncio.Task[None]] = []
        self.surroundings = Surroundings(lambda: self.image)
        self.connection_id = 0
        """On which requests come."""
        self.loop: Any = None
        """The one that a test drives by hand, if it does."""
        self.watch = ImageWatch(lambda: self.image)
        self.quorum: Any = LoneVoter()
        self.liveness = Liveness(3.0)
        self.lines: list[str] = []
        self.groups = self._make_groups()
        hosted = HostedPartitions(
            by_name={},
            by_id={},
            unopened=self.unopened,
            log_dirs=lambda: self.online,
            storage_failed=lambda partition, error: self.storage_errors.append(partition),
            damaged=lambda partition, error: None,
        )
        markers = MarkerWriter(hosted, self.groups, self.clock, lambda: 30.0)
        self.transactions, verifier = self._make_transactions(markers)
        self.producer_ids = BlockOfProducerIds(self._allocate_producer_id)
        self.parts = NodeContext(
            dynamic_config=DynamicConfig(NodeConfig.build(of(texts))),
            cluster_id=CLUSTER_ID,
            disk=disk,
            clock=self.clock,
            randomness=self.randomness,
            metadata=SettableMetadata(self),
            controller=ControllerAccess(
                self.quorum, self._decide, self.liveness, ask=self._ask_controller, forward=self._forward
            ),
            hosted=hosted,
            fetches=FetchResources(FetchSessions(10, self.randomness), SharedReads(), TopicBytes()),
            followers=ReplicaFetchResources(
                FollowerSessions(self.randomness), lambda partition: False, lambda partition, size_bytes: None
            ),
            groups=self.groups,
            transactions=NodeTransactions(self.transactions, verifier, self.producer_ids),
            markers=markers,
            connections=Connections(SentMetadata(), closed=lambda connection_id: None),
            request_stats=RequestStats(),
            allocate_producer_id=self._allocate_producer_id,
            spawn=self._spawn,
            warn=lambda sentence: None,
        )
        self.commit([r.FeatureLevelRecord(name="metadata.version", feature_level=30), registration(1)])

    def _make_groups(self) -> GroupCoordinator:
        logger = JsonLogger(self.lines.append, 20)
        dependencies = RunnerDependencies(
            lambda: self.image,
            self.disk,
            self.clock,
            logger,
            on_storage_error=lambda partition, error: self.parts.hosted.storage_failed(partition, error),
            on_corrupt=lambda partition, error: None,
            on_task_ended=lambda task: None,
        )
        topic = CoordinatorTopic(
            offsets_topic.CONSUMER_OFFSETS,
            lambda: offsets_topic.settings(self.parts.config),
            self._ask_controller,
            self._spawn,
            logger,
        )
        group_dependencies = NodeGroupDependencies(lambda: self.parts.config, lambda: self.image, self.randomness)
        return GroupCoordinator(group_dependencies, dependencies, topic)

    def _make_transactions(self, markers: MarkerWriter) -> tuple[TransactionCoordinator, TransactionVerifier]:
        logger = JsonLogger(self.lines.append, 20)
        events = Events(self.clock, logger, dir_id(1))
        signals = MarkerSignals()
        sender = MarkerSender(
            1,
            lambda: self.image,
            NoOtherBrokers(),
            markers,
            lambda: 30.0,
            self._spawn,
            logger,
            signals.marked,
            signals.refused,
        )
        dependencies = RunnerDependencies(
            lambda: self.image,
            self.disk,
            self.clock,
            logger,
            on_storage_error=lambda partition, error: self.parts.hosted.storage_failed(partition, error),
            on_corrupt=lambda partition, error: None,
            on_task_ended=lambda task: None,
        )
        topic = CoordinatorTopic(
            transaction_topic.TRANSACTION_STATE,
            lambda: transaction_topic.settings(self.parts.config),
            self._ask_controller,
            self._spawn,
            logger,
        )
        transactions = TransactionCoordinator(
            NodeTransactionDependencies(
                lambda: self.parts.config, lambda: self.image, lambda: self.producer_ids.take(), sender, events
            ),
            dependencies,
            topic,
        )
        signals.marked.subscribe(transactions.marked)
        signals.refused.subscribe(transactions.refused)
        self.marker_sender = sender
        return transactions, TransactionVerifier(
            1, lambda: self.image, transactions, NoOtherBrokers(), lambda: 30.0, self._spawn
        )

    async def _decide(self, decision: Callable[[MetadataImage], Any]) -> Any:
        await asyncio.sleep(0)
        if self.controller_error is not None:
            raise self.controller_error
        outcome: Any = decision(self.image)
        records, answer = finished(outcome) if isinstance(outcome, Generator) else outcome
        self.commit(records)
        return answer

    async def _ask_controller(self, api_key: int, request: Any) -> Any:
        from strandline.api.table import CONTROLLER_APIS

        api = CONTROLLER_APIS[api_key]
        reply = api.handle(request, self.context(api_key, api.versions[-1]))
        return await reply if inspect.isawaitable(reply) else reply

    async def _forward(self, frame: bytes, principal: bytes, host: bytes) -> bytes:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "there is nobody to pass it on to")

    async def _allocate_producer_id(self) -> int:
        if self.controller_error is not None:
            raise self.controller_error
        records, block = allocate(self.image, 1, 1)
        self.commit(records)
        return block[0]

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.beside.append(asyncio.get_running_loop().create_task(coroutine))

    def commit(self, records: list[Any]) -> None:
        """As the node does: the image first, then the partitions that it places here, and their roles."""
        self.committed += records
        before, self.image = self.image, replay(self.image, records, self.image.end_offset + len(records), 1)
        for key, partition in list(self.parts.hosted.by_name.items()):
            topic = self.image.topics_by_id.get(partition.topic_id)
            if topic is None or 1 not in topic.partitions[partition.index].replicas:
                del self.parts.hosted.by_name[key], self.parts.hosted.by_id[partition.topic_id, partition.index]
                partition.gone = True
                partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                self._role(partition)
                partition.log.close()
        for topic in self.image.topics.values():
            for index, state in enumerate(topic.partitions):
                if (topic.name, index) in self.parts.hosted.by_name:
                    if self.parts.hosted.by_name[topic.name, index].apply(state):
                        self._role(self.parts.hosted.by_name[topic.name, index])
                elif 1 in state.replicas and (topic.name, index) not in self.unopened:
                    self._host(topic, index)
        if before.brokers is not self.image.brokers:
            for partition in self.parts.hosted.by_name.values():
                partition.brokers_changed()
        for part in (self.groups, self.transactions, self.marker_sender):
            part.image_applied(self.image)
        self.watch.changed()

    def _role(self, partition: Partition) -> None:
        self.groups.role(partition)
        self.transactions.role(partition)

    def _host(self, topic: TopicImage, index: int) -> None:
        config = self.parts.config.topic_config(self.image.config(TOPIC_RESOURCE, topic.name))
        log = load(self.disk, f"{self.root}/{topic.name}-{index}", config, clean=True).log
        partition = Partition(
            topic.name, index, topic.topic_id, log, topic.partitions[index], self.surroundings, high_watermark=0
        )
        self.parts.hosted.by_name[topic.name, index] = self.parts.hosted.by_id[topic.topic_id, index] = partition
        self.parts.followers.sessions.opened(topic.name, topic.topic_id, index)
        self._role(partition)

    def create(
        self,
        name: str,
        *replicas: tuple[int, ...],
        configs: Mapping[str, str] = {},
        leader: int | None = None,
        leader_epoch: int = 0,
        directories: tuple[Uuid, ...] = (),
    ) -> Uuid:
        """A topic with these replicas of its partitions, straight into the metadata."""
        topic_id = Uuid.draw(self.randomness)
        self.commit(
            [
                r.TopicRecord(name=name, topic_id=topic_id),
                *(
                    r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value)
                    for key, value in configs.items()
                ),
                *(
                    r.PartitionRecord(
                        partition_id=index,
                        topic_id=topic_id,
                        replicas=chosen,
                        isr=chosen,
                        leader=chosen[0] if leader is None else leader,
                        leader_epoch=leader_epoch,
                        partition_epoch=0,
                        directories=directories,
                    )
                    for index, chosen in enumerate(replicas or ((1,),))
                ),
            ]
        )
        return topic_id

    def append(self, topic: str, *timestamps: int, index: int = 0, **fields: Any) -> None:
        """One batch, with a record for each timestamp."""
        builder = BatchBuilder()
        for timestamp in timestamps:
            builder.append(b"k", b"v", timestamp=timestamp)
        batch = memoryview(builder.build(**fields))
        self.parts.hosted.by_name[topic, index].append(batch, self.clock.wall_ms(), guard=NOT_REQUIRED)

    def change(self, topic: str = "t", index: int = 0, **fields: Any) -> None:
        """The controller has another leader, ISR or set of replicas for a partition."""
        topic_id = self.image.topics[topic].topic_id
        self.commit([r.PartitionChangeRecord(partition_id=index, topic_id=topic_id, **fields)])

    def follow(self, replica: int, offset: int, topic: str = "t", index: int = 0, *, log_start: int = 0) -> None:
        """A follower fetches from there, as the incarnation that is registered."""
        partition = self.parts.hosted.by_name[topic, index]
        asked = FetchPartition(index, partition.leader_epoch, offset, -1, log_start, 1 << 20)
        partition.follower_fetched(replica, asked, self.image.brokers[replica].epoch, self.surroundings.time)

    def context(self, api_key: int, version: int, listener: str = LISTENER) -> RequestContext:
        loop = self.loop or asyncio.get_running_loop()
        return RequestContext(
            self.parts,
            api_key,
            version,
            client_id="test",
            listener=listener,
            peer="127.0.0.1",
            loop=loop,
            connection_id=self.connection_id,
            may_act_as_broker=self.parts.config.may_act_as_broker(listener),
        )

    async def call(self, api: ModuleType, version: int, listener: str = LISTENER, **fields: Any) -> Any:
        """The API's answer to a request, both by way of their bytes in this version."""
        assert version in (*api.VERSIONS, *getattr(api, "UNSTABLE_VERSIONS", ()))
        request = messages.request(api.KEY)(**fields)
        sent = messages.decode_request(api.KEY, version, messages.encode_request(api.KEY, version, request))
        reply = api.handle(sent, self.context(api.KEY, version, listener))
        if isinstance(reply, PendingReply):
            reply = await _delivered(reply)
        if inspect.isawaitable(reply):
            reply = await reply
        if not isinstance(reply, bytes):
            reply = messages.encode_response(api.KEY, version, reply)
        return messages.decode_response(api.KEY, version, reply)


async def _delivered(later: PendingReply[Any]) -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    later.deliver_to(future.set_result)
    return await future


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., TestBroker]]:
    disks = []

    def make(**settings: str) -> TestBroker:
        disk = FileDisk(max_open_files=100)
        disks.append(disk)
        texts = {name.replace("_", "."): text for name, text in settings.items()}
        return TestBroker(disk, str(tmp_path / f"logs{len(disks)}"), texts)

    yield make
    for disk in disks:
        disk.close()


@pytest.fixture
def broker(make_broker: Callable[..., TestBroker]) -> TestBroker:
    return make_broker()
