"""A broker on the workbench: a host that outlives its processes, and a process with a real partition, log and fetch session.

Always true: a process hosts its partition only once it has applied its own registration; it flushes, fetches, reads metadata and
writes checkpoints only when the test says so. What a dead process has sent may still arrive; what is sent to it does not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from strandline.api.context import ReplicaFetchResources
from strandline.api.fetching import follower_fetch
from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.api.fetching.shared_reads import SharedReads
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.requests.request_stats import RequestStats
from strandline.client.core.fetch_session import BROKEN
from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.log.log import Log
from strandline.log.recovery import load
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.incarnations import Incarnation, incarnation
from strandline.node.fetching.session import FetcherSession, Followed
from strandline.node.log_effects import perform
from strandline.records.batch import decode
from strandline.records.header import iterate
from strandline.replica.following import FetchOutcome
from strandline.replica.isr_state import AWAIT_METADATA, ROLLED_BACK, IsrAnswer, ProposedIsr
from strandline.replica.partition import Partition
from strandline.wire.fetch import FetchRequest
from strandline.wire.fetch_asking import parse_response

from .controller import TOPIC, TOPIC_ID
from .hand_driven import MemoryDisk, at_once

if TYPE_CHECKING:
    from .cluster import Cluster

VERSION = 17
MAX_WAIT_MS = 500
DIRECTORY = "/data/t-0"
CONTROLLER = 0
_TOPIC_CONFIG = TopicConfig.build()


@dataclass
class Host:
    """What stays when a process ends."""

    id: int
    disk: MemoryDisk
    process: Process | None = None
    incarnations: int = 0
    checkpoint: tuple[int, int, int] = (0, 0, 0)
    """High watermark, recovery point and log start, as last written down."""
    clean_epoch: int = -1
    """The broker epoch under which it last stopped in order; -1 after anything else."""


class Process:
    """One life of a broker. To its partition it is the dependencies."""

    def __init__(self, cluster: Cluster, host: Host) -> None:
        self.cluster = cluster
        self.host = host
        self.node_id = host.id
        self.lag_time_max_s = cluster.lag_s
        self.image = MetadataImage()
        self.applied = -1
        self.partition: Partition | None = None
        self.links: dict[int, Link] = {}
        self.is_flush_due = False
        self.truncations: list[str] = []
        self.proposal_is_pending = False
        self.was_clean = host.clean_epoch >= 0
        host.incarnations += 1
        self.broker_epoch = cluster.controller.register(host.id, host.incarnations, host.clean_epoch)
        host.clean_epoch = -1
        self.partitions: dict[tuple[bytes, int], Partition] = {}
        self.sessions = FollowerSessions(random.Random(host.incarnations))
        # As much of a node's context as a follower's Fetch needs.
        self.api = SimpleNamespace(
            config=SimpleNamespace(fetch_max_bytes=2**30),
            metadata=SimpleNamespace(image=lambda: self.image),
            hosted=SimpleNamespace(by_name={}, by_id=self.partitions),
            absence_of=lambda topic, index: self.image.absence_of(topic, index),
            fetches=SimpleNamespace(shared_reads=SharedReads()),
            followers=ReplicaFetchResources(
                self.sessions, is_throttled=lambda partition: False, replicated=lambda partition, size_bytes: None
            ),
            request_stats=RequestStats(),
        )
        self.context: Any = SimpleNamespace(
            node=self.api, version=VERSION, loop=cluster.loop, connection_id=0, may_act_as_broker=True
        )

    @property
    def runs(self) -> bool:
        return self.host.process is self

    # What the partition asks of its node

    def now(self) -> float:
        return self.cluster.loop.now

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active and broker_epoch in (-1, broker.epoch)

    def is_alive(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        return incarnation(self.image, broker_id, broker_epoch)

    def flush_due(self, partition: Partition) -> None:
        self.is_flush_due = True

    def note(self, kind: str, partition: Partition, reason: str, **facts: Any) -> None:
        if kind == "truncated":
            self.truncations.append(f"{facts['log_end_offset']}-{facts['was']}")
            self.cluster.note_truncation(self)

    def propose_isr(self, partition: Partition, proposal: ProposedIsr) -> None:
        self.proposal_is_pending = True
        self.cluster.send("alter", self.node_id, CONTROLLER, partial(self._decide, partition, proposal))

    def _decide(self, partition: Partition, proposal: ProposedIsr) -> None:
        """The proposal is with the controller."""
        answer: IsrAnswer | ErrorCode
        try:
            decided = self.cluster.controller.alter(self.node_id, self.broker_epoch, proposal)
            if isinstance(decided, PartitionImage):
                answer = IsrAnswer(
                    decided.leader,
                    decided.leader_epoch,
                    decided.isr,
                    decided.leader_recovery_state,
                    decided.partition_epoch,
                )
            else:
                answer = decided
        except KafkaError as error:
            answer = error.code
        self.cluster.send("altered", CONTROLLER, self.node_id, partial(self._decided, partition, proposal, answer))

    def _decided(self, partition: Partition, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode) -> None:
        if not self.runs or self.partition is not partition:
            return
        self.proposal_is_pending = False
        if isinstance(answer, ErrorCode) and answer not in ROLLED_BACK | AWAIT_METADATA:
            self.propose_again()
        else:
            partition.isr_answered(proposal, answer)

    def propose_again(self) -> None:
        """The proposal, or its answer, was lost; or the controller had none: the same is sent until it is decided."""
        self.proposal_is_pending = False
        partition = self.partition
        if partition is not None and partition.leadership is not None and partition.leadership.isr.pending is not None:
            self.propose_isr(partition, partition.leadership.isr.pending)

    # Metadata

    def apply(self, upto: int | None = None) -> None:
        """Read the controller's images up to that one; only the last of them counts."""
        images = self.cluster.controller.images
        upto = len(images) - 1 if upto is None else min(upto, len(images) - 1)
        if upto <= self.applied:
            return
        before, self.applied, self.image = self.image, upto, images[upto]
        state = self.image.partition(TOPIC, 0)
        if self.image.end_offset <= self.broker_epoch or state is None:
            return
        if self.node_id not in state.replicas:
            self._drop()
        elif self.partition is None:
            self._host(state)
        else:
            self.partition.apply(state)
        if before.brokers is not self.image.brokers and self.partition is not None:
            self.partition.brokers_changed()
        self._follow()

    def _host(self, state: PartitionImage) -> None:
        watermark, recovery_point, start = self.host.checkpoint
        clean = self.was_clean
        log = load(
            self.host.disk,
            DIRECTORY,
            self.cluster.topic_config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=start,
            now_ms=self.cluster.loop.wall_ms(),
        ).log
        self.host.disk.sync_dir("/data")
        self.host.disk.sync_dir("/")
        self.partition = Partition(TOPIC, 0, TOPIC_ID, log, state, self, high_watermark=watermark)
        self.partitions[TOPIC_ID, 0] = self.partition
        self.sessions.opened(TOPIC, TOPIC_ID, 0)

    def _drop(self) -> None:
        """The partition was moved elsewhere: its log goes."""
        if self.partition is not None:
            self.partition.gone = True
            self.partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self.partition.log.close()
            self.partition = None
            self.partitions.clear()
        if self.host.disk.exists(DIRECTORY):
            self.host.disk.remove_tree(DIRECTORY)
            self.host.disk.sync_dir("/data")
        self.host.checkpoint, self.was_clean = (0, 0, 0), False

    def _follow(self) -> None:
        partition = self.partition
        leader = -1
        if partition is not None and not partition.leads and not partition.gone and partition.state.has_leader:
            leader = partition.state.leader
        for leader_id, link in self.links.items():
            if leader_id != leader:
                for followed in list(link.session.members):
                    link.session.unfollow(followed)
        if leader >= 0 and partition is not None:
            if leader not in self.links:
                self.links[leader] = Link(self, leader)
            link = self.links[leader]
            known = link.session.members.get(partition)
            if known is None or known.asked is None or known.asked.current_leader_epoch != partition.leader_epoch:
                for other in list(link.session.members):
                    if other is not partition:
                        link.session.unfollow(other)
                link.session.follow(partition)

    # Doing

    def flush(self) -> None:
        partition = self.partition
        if partition is not None and self.is_flush_due:
            self.is_flush_due = False
            at_once(perform(partition.log.flush()))
            if partition.after_flush(self.now()):
                self.is_flush_due = True

    def fetch(self) -> None:
        partition = self.partition
        if partition is not None and not partition.leads and partition.state.leader in self.links:
            self.links[partition.state.leader].ask()

    def write_checkpoint(self) -> None:
        if self.partition is not None:
            log = self.partition.log
            self.host.checkpoint = (self.partition.high_watermark, log.recovery_point, log.log_start_offset)

    def end(self) -> None:
        """The process is no more; what it had sent is still under way."""
        self.host.process = None
        for link in self.links.values():
            link.is_over = True

    def close_clean(self) -> None:
        """All is on the device, and word is left that it is, unless what an unclean end left was not looked at yet."""
        if self.partition is not None:
            self.partition.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.partition.log.close_clean()
            self.write_checkpoint()
        if self.partition is not None or self.was_clean:
            self.host.clean_epoch = self.broker_epoch
        self.end()


class Link:
    """A follower's connection to one leader, with the fetch session on it; at most one Fetch is under way."""

    def __init__(self, follower: Process, leader_id: int) -> None:
        self.follower = follower
        self.leader_id = leader_id
        self.cluster = follower.cluster
        self.session = FetcherSession(self.cluster.fetch_bytes)
        self.is_over = False
        self._leader: Process | None = None
        self._generation = 0
        self._is_busy = False
        self._later: PendingReply[Any] | None = None

    def reset(self) -> None:
        """The connection is gone, with everything on it."""
        self._generation += 1
        self._leader = None
        self._is_busy = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self.session.begin(VERSION)

    @property
    def waits(self) -> bool:
        """A Fetch is with the leader, who has nothing to tell yet."""
        return self._later is not None

    def ask(self) -> None:
        if self._is_busy:
            return
        self.session.wake(self.cluster.loop.now)
        request = self.session.next_request(self._blocked)
        if request is None:
            return
        self._is_busy = True
        fetch = FetchRequest(
            self.follower.node_id,
            self.follower.broker_epoch,
            MAX_WAIT_MS,
            1,
            2**20,
            0,
            request.session_id,
            request.epoch,
            request.topics,
            request.forgotten,
            "",
            None,
        )
        arrive = partial(self._arrive, fetch, request.number, self._generation)
        self.cluster.send("fetch", self.follower.node_id, self.leader_id, arrive, self)

    def _blocked(self, blocked: list[Followed]) -> bool:
        for followed in blocked:
            turn = self.session.rest(followed)
            partition = followed.partition
            if not (partition.leads or partition.offline or partition.gone):
                wake = partial(self._written, followed, turn)
                partition.when_written(partition.log.log_end_offset, wake)
        return False

    def _written(self, followed: Followed, turn: int, code: ErrorCode) -> None:
        self.session.wake_turn(followed, turn)

    def _arrive(self, fetch: FetchRequest, number: int, generation: int) -> None:
        """The Fetch is with the leader, or with nobody."""
        if generation != self._generation:
            return
        leader = self.cluster.hosts[self.leader_id].process
        self._leader = self._leader or leader
        if leader is None or self._leader is not leader:
            self.reset()
            return
        reply = follower_fetch.handle(fetch, leader.context)
        if isinstance(reply, PendingReply):
            self._later = reply
            reply.deliver_to(partial(self._reply, number, generation))
        else:
            self._reply(number, generation, reply)

    def _reply(self, number: int, generation: int, reply: Any) -> None:
        self._later = None
        if isinstance(reply, Exception):
            raise reply
        frame = b"".join(reply)
        take = partial(self._take, number, generation, frame)
        self.cluster.send("answer", self.leader_id, self.follower.node_id, take, self)

    def _take(self, number: int, generation: int, frame: bytes) -> None:
        if generation != self._generation or not self.follower.runs:
            return
        self._is_busy = False
        response = parse_response(VERSION, memoryview(frame), 0)
        if response.error_code:
            self.session.begin(forget_id=error_code(response.error_code) in BROKEN)
            return
        self.session.answered(response.session_id)
        for topic, answers in response.topics:
            for answer in answers:
                followed = self.session.find(topic, answer.partition, number)
                if followed is not None:
                    self._take_answer(followed, answer)

    def _take_answer(self, followed: Followed, answer: Any) -> None:
        partition, asked = followed.partition, followed.asked
        assert asked is not None
        outcome, taken_bytes, _ = partition.take(asked, answer, self.cluster.loop.wall_ms())
        if outcome is FetchOutcome.ADVANCED:
            if taken_bytes or partition.log.log_start_offset != asked.log_start_offset:
                self.session.name(followed)
        elif outcome is FetchOutcome.TRUNCATED:
            self.session.name(followed)
        elif outcome is FetchOutcome.OUT_OF_RANGE:
            self._reset_position(followed)
        elif outcome is not FetchOutcome.NOTHING:
            self.session.rest(followed, self.cluster.loop.now + 1.0)

    def _reset_position(self, followed: Followed) -> None:
        """ListOffsets of the leader, at once: it has its own epoch check."""
        partition = followed.partition
        leader = self._leader
        if leader is None or not leader.runs or leader.partition is None:
            self.reset()
            return
        try:
            leader.partition.check_leader_epoch(partition.leader_epoch)
        except KafkaError:
            self.session.rest(followed, self.cluster.loop.now + 1.0)
            return
        partition.reset(leader.partition.log.log_start_offset, leader.partition.log.log_end_offset)
        self.session.name(followed)


def topic_config(**fields: Any) -> TopicConfig:
    return replace(_TOPIC_CONFIG, **fields)


def records_of(log: Log, offset: int) -> list[tuple[int, str, int]]:
    """Offset, value and leader epoch of what is in a log from there on."""
    found: list[tuple[int, str, int]] = []
    while data := log.read(offset, 2**30, log.log_end_offset, min_one=True):
        for position, header in iterate(data):
            batch = data[position : position + header.size_bytes]
            found += [
                (record.offset, (record.value or b"").decode(), header.partition_leader_epoch)
                for record in decode(batch)
                if record.offset >= offset
            ]
        offset = header.next_offset
    return found
