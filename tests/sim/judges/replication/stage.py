"""A stage for judges of replicas: brokers with one partition each, whose logs hold real batches, and images that are
told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strandline.api.requests.request_stats import RequestStats
from strandline.histories.exchanges import FETCH, AskedPosition, BrokerExchange
from strandline.histories.member import ClusterMember
from strandline.histories.quorum_observation import QuorumNodeState, QuorumObservation, Violation
from strandline.histories.replica_observation import ReplicaJudge, ReplicaObservation
from strandline.histories.transcript import Transcript
from strandline.histories.wire import QuorumMessage
from strandline.ids import ZERO_UUID
from strandline.log.epochs import LeaderEpochs
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.node.assembly import NodeParts
from strandline.node.observation.node import NodeObservation
from strandline.raft.voters import VoterSet
from strandline.records.batch import BatchBuilder
from strandline.records.header import assign
from strandline.replica.isr_state import Isr, ProposedIsr
from strandline.sim.disk import SimDisk
from strandline.sim.file import SimFile
from strandline.sim.inode import Inode
from strandline.wire.fetch import FetchedPartition, write_response

KEY = (ZERO_UUID, 0)
BROKERS = (1, 2, 3)
VERSION = 17
"""Of Fetch."""


class FakeLog:
    """One segment, in memory."""

    def __init__(self, data: bytes = b"", ends: tuple[int, ...] = (0,), positions: tuple[int, ...] = (0,)) -> None:
        self.inode = Inode(0, 0, data)
        file = SimFile(cast(SimDisk, None), "0.log", self.inode)
        self.active = SimpleNamespace(base_offset=0, file=file)
        self.segments = [self.active]
        self.truncations = self.log_start_offset = self.recovery_point = 0
        self.epochs = LeaderEpochs([(0, 0)])
        self._ends, self._positions = list(ends), list(positions)

    @property
    def log_end_offset(self) -> int:
        return self._ends[-1]

    def check_invariants(self) -> None:
        """Nothing is wrong with it."""

    def append(self, *values: str, epoch: int = 0) -> None:
        builder = BatchBuilder()
        for value in values:
            builder.append(None, value.encode(), timestamp=1)
        batch = builder.build()
        assign(batch, self.log_end_offset, epoch)
        self.inode.data += batch
        self._ends.append(self.log_end_offset + len(values))
        self._positions.append(len(self.inode.data))

    def truncate(self, offset: int) -> None:
        while self.log_end_offset > offset:
            self._ends.pop()
            self._positions.pop()
        del self.inode.data[self._positions[-1] :]
        self.truncations += 1

    def reopened(self, *, power_lost: bool = False, end: int | None = None) -> FakeLog:
        """As another process finds it."""
        count = len(self._ends) if end is None else self._ends.index(end) + 1
        size = self._positions[count - 1]
        log = FakeLog(bytes(self.inode.data[:size]), tuple(self._ends[:count]), tuple(self._positions[:count]))
        if not power_lost:
            log.active.file = self.active.file
        return log


@dataclass(eq=False)
class FakePartition:
    state: PartitionImage
    log: FakeLog = field(default_factory=FakeLog)
    high_watermark: int = 0
    leader_epoch: int = 0
    leadership: Any = None
    unstable: int | None = None
    """Where a transaction is open."""
    offline: bool = False
    gone: bool = False
    topic_id: Any = ZERO_UUID
    index: int = 0

    @property
    def local_end(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark if self.unstable is None else min(self.unstable, self.high_watermark)

    @property
    def leads(self) -> bool:
        return self.leadership is not None

    def check_invariants(self) -> None:
        """Nothing is wrong with it."""

    def __str__(self) -> str:
        return "t-0"


class FakeMember:
    def __init__(self, node_id: int, state: PartitionImage) -> None:
        self.id, self.life, self.is_up = node_id, 0, True
        self.broker_epoch = node_id
        self.config = SimpleNamespace(replica_lag_time_max_ms=10_000)
        self.start(FakePartition(state))

    def start(self, partition: FakePartition) -> None:
        """A process begins."""
        self.life += 1
        self.partition = partition
        self.fetched_from: dict[FakePartition, int] = {}
        self.server = server = SimpleNamespace(
            is_hosting=True,
            replicas=SimpleNamespace(partitions={("t", 0): partition}),
            replication=SimpleNamespace(fetchers=SimpleNamespace(leader_of=self.fetched_from.get, is_closed=False)),
            lifecycle=SimpleNamespace(broker_epoch=self.broker_epoch),
            cleaner=SimpleNamespace(stats=SimpleNamespace(cleanings=0)),
        )
        parts = SimpleNamespace(
            quorum=SimpleNamespace(has_begun=False),
            broker_server=server,
            groups=SimpleNamespace(runners={}),
            context=SimpleNamespace(request_stats=RequestStats()),
        )
        self.observed = NodeObservation(lambda: cast(NodeParts, parts))


class Stage:
    """Brokers 1, 2 and 3; broker 1 leads, and all are in sync, unless said otherwise."""

    def __init__(self, judge: ReplicaJudge, *, min_isr: int = 2) -> None:
        self.state = PartitionImage(BROKERS, BROKERS, 1, 0, 0)
        self.members = {node_id: FakeMember(node_id, self.state) for node_id in BROKERS}
        self.now = 0.0
        transcript = Transcript(lambda: self.now)
        self._quorum = QuorumObservation([], transcript, now=lambda: self.now)
        self.observed = ReplicaObservation(
            self._quorum, cast(dict[int, ClusterMember], self.members), [judge], transcript
        )
        self._configs = {(2, "t"): {"min.insync.replicas": str(min_isr)}}
        self._brokers = {i: BrokerImage(i, i, ZERO_UUID, (), fenced=False) for i in BROKERS}
        self._end_offset = 0
        self.publish()
        self.lead(1, 0)
        for node_id in BROKERS[1:]:
            self.follow(node_id, 1, 0)

    def publish(self, *, brokers: dict[int, int] | None = None, **changes: Any) -> None:
        """A newer image is committed; `brokers` have these epochs in it."""
        self._end_offset += 1
        self.state = replace(self.state, **changes)
        for broker_id, epoch in (brokers or {}).items():
            self._brokers[broker_id] = replace(self._brokers[broker_id], epoch=epoch)
        topic = TopicImage("t", ZERO_UUID, (self.state,))
        image = MetadataImage(
            self._end_offset,
            topics={"t": topic},
            topics_by_id={ZERO_UUID: topic},
            brokers=dict(self._brokers),
            configs=self._configs,
        )
        self._quorum.see(9, QuorumNodeState(1, "follower", 1, -1, None, VoterSet(), 0, 0, 0, image))

    def partition(self, node_id: int) -> FakePartition:
        return self.members[node_id].partition

    def lead(self, node_id: int, leader_epoch: int) -> None:
        partition = self.partition(node_id)
        partition.state, partition.leader_epoch = replace(self.state), leader_epoch
        partition.leadership = SimpleNamespace(isr=Isr(self.state.isr, self.state.partition_epoch))
        self.members[node_id].fetched_from.clear()
        self.look(node_id)

    def follow(self, node_id: int, leader: int, leader_epoch: int, *, fetched_from: int | None = None) -> None:
        partition = self.partition(node_id)
        partition.state, partition.leader_epoch = replace(self.state, leader=leader), leader_epoch
        partition.leadership = None
        self.members[node_id].fetched_from[partition] = leader if fetched_from is None else fetched_from
        self.look(node_id)

    def append(self, node_id: int, *values: str, epoch: int = 0) -> None:
        self.partition(node_id).log.append(*values, epoch=epoch)
        self.look(node_id)

    def commit(self, node_id: int, high_watermark: int) -> None:
        self.partition(node_id).high_watermark = high_watermark
        self.look(node_id)

    def cut(self, node_id: int, offset: int) -> None:
        partition = self.partition(node_id)
        partition.log.truncate(offset)
        partition.high_watermark = min(partition.high_watermark, offset)
        self.look(node_id)

    def restart(self, node_id: int, *, power_lost: bool = False, end: int | None = None) -> None:
        """The process dies and another one opens what is left of the log."""
        before = self.partition(node_id)
        log = before.log.reopened(power_lost=power_lost, end=end)
        self.members[node_id].start(FakePartition(before.state, log))
        self.look(node_id)

    def propose(self, node_id: int, **epochs: int) -> None:
        """A leader wishes these replicas, by names such as n2, to be in sync, as these incarnations of their
        brokers."""
        isr = tuple((int(name[1:]), epoch) for name, epoch in epochs.items())
        known = self.partition(node_id).leadership.isr
        known.propose(
            ProposedIsr(ZERO_UUID, 0, self.partition(node_id).leader_epoch, known.partition_epoch, isr, 0, "")
        )
        self.look(node_id)

    def answer(self, node_id: int, exchange: BrokerExchange) -> None:
        """A broker answers."""
        self._quorum.see_sent(QuorumMessage(node_id, exchange.api_key, -1, response=True, exchange=exchange))

    def fetch(
        self,
        follower: int,
        offset: int,
        *,
        at: float,
        epoch: int = 0,
        answer: FetchedPartition | None = None,
        is_named: bool = True,
        reads_committed: bool = False,
    ) -> None:
        """A Fetch that left at that time is answered now by broker 1; with nothing new unless said otherwise."""
        exchange = BrokerExchange(FETCH, VERSION, at)
        exchange.replica_id = follower
        exchange.replica_epoch = self.members[follower].broker_epoch if follower in self.members else -1
        exchange.reads_committed = reads_committed
        exchange.asked = {KEY: AskedPosition(epoch, offset)}
        exchange.named = frozenset(exchange.asked if is_named else ())
        body = write_response(VERSION, [(ZERO_UUID, [answer])] if answer is not None else [])
        exchange.response = bytes(5) + b"".join(bytes(part) for part in body)
        self.answer(1, exchange)

    def look(self, node_id: int) -> None:
        self.observed.look(cast(ClusterMember, self.members[node_id]))


def stage(judge: type[ReplicaJudge], *, min_isr: int = 2) -> Stage:
    return Stage(judge(), min_isr=min_isr)


def broken(judge: type[object]) -> pytest.RaisesExc[Violation]:
    return pytest.raises(Violation, match=judge.__name__)


def committed_by_all(story: Stage, *values: str) -> None:
    """All have it, and know that it is committed."""
    for node_id in BROKERS:
        story.append(node_id, *values)
    for node_id in BROKERS:
        story.commit(node_id, story.partition(node_id).log.log_end_offset)
