"""A whole quorum in memory: Raft objects, a network of delays and faults, virtual time, one seed.

Always true: every request that is sent ends with exactly one `Replied` or `RequestUnanswered`; effects are carried out in their
order before the next event; whatever happens is decided by the seed. After every event the invariants are checked.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    Address,
    AddVoterRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    RaftFetchResponse,
    RemoveVoterRequest,
    ReplicaKey,
    Request,
    Response,
)
from strandline.raft.raft import Raft
from strandline.raft.timings import Timings
from strandline.raft.voters import VoterNode, VoterSet
from tests.unit.raft.invariants import Invariants
from tests.unit.raft.memory_log import MemoryLog, Snapshot

TIMINGS = Timings(fetch_max_bytes=400, fetch_snapshot_max_bytes=64)
REQUEST_TIMEOUT_S = 2.0


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(node_id.to_bytes(16, "big")))


def address(node_id: int) -> Address:
    return Address(f"node{node_id}", 9000)


def voter(node_id: int, *, directory: bool = True) -> VoterNode:
    replica_key = key(node_id) if directory else ReplicaKey(node_id)
    return VoterNode(replica_key, {"CONTROLLER": address(node_id)}, range(2 if directory else 1))


@dataclass
class Faults:
    """How unkind the network is."""

    delay_s: tuple[float, float] = (0.001, 0.001)
    flush_s: tuple[float, float] = (0.001, 0.001)
    loss: float = 0.0
    """Of a request or its response; the connection is reset, at once or in the end."""
    duplication: float = 0.0
    crash: float = 0.0
    """Before each single effect: what comes before it is done, what comes after it is not."""


@dataclass
class Node:
    id: int
    is_controller: bool
    log: MemoryLog
    saved: ElectionState = field(default_factory=ElectionState)
    raft: Raft | None = None
    life: int = 0
    """How often it was started; what belongs to an earlier life finds nobody."""
    paused: list[on.Event] | None = None
    """What happens while it stands still."""
    flushing: bool = False
    chunks: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    """What happened to its log."""
    states: list[str] = field(default_factory=list)
    """Through which states it went, with their epochs."""


class Cluster:
    def __init__(
        self,
        voters: Iterable[int],
        *,
        observers: Iterable[int] = (),
        brokers: Iterable[int] = (),
        kraft_version: int = 1,
        seed: int = 0,
        faults: Faults | None = None,
        start: bool = True,
    ) -> None:
        self.randomness = random.Random(seed)
        self.faults = faults or Faults()
        self.kraft_version = kraft_version
        self.now = 0.0
        voters, brokers = list(voters), list(brokers)
        self.voters = VoterSet(voter(node_id, directory=kraft_version > 0) for node_id in voters)
        self.nodes = {n: Node(n, n not in brokers, MemoryLog()) for n in [*voters, *observers, *brokers]}
        self.cut: set[tuple[int, int]] = set()
        """Links (from, to) on which nothing arrives, silently."""
        self.invariants = Invariants()
        self.written = 0
        self.responses: list[Response] = []
        """To voter changes that were asked for."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._contents: dict[OffsetAndEpoch, Snapshot] = {}
        self._under_way: dict[tuple[int, int], list[Callable[[float], None]]] = {}
        """How to lose the requests that are on their way from one node to another."""
        if start:
            for node_id in self.nodes:
                self.start(node_id)

    # Time

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._queue, (time, self._scheduled, action))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = until

    def run_until(self, condition: Callable[[], bool], *, at_most: float = 30.0) -> bool:
        until = self.now + at_most
        while not condition() and self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        return condition()

    # What happens to nodes

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        assert node.raft is None
        node.life += 1
        node.flushing = False
        node.chunks = {}
        begun = node.log.snapshots.get(node.log.start)
        named, version = node.log.history()
        kraft_version = begun.kraft_version if begun else self.kraft_version
        node.raft = Raft(
            key(node_id),
            own_endpoints={"CONTROLLER": address(node_id)} if node.is_controller else {},
            is_controller=node.is_controller,
            voters=begun.voters if begun and begun.voters else self.voters,
            voter_history=named,
            kraft_version=kraft_version if version is None else version,
            bootstrap=[address(n) for n in self.voters.ids],
            log=node.log,
            state=node.saved,
            timings=TIMINGS,
            randomness=random.Random(self.randomness.random()),
        )
        self.step(node, on.Started())

    def crash(self, node_id: int, *, power_loss: bool = True) -> None:
        """Kill it; with the power, what was not flushed may go too. Its peers see their connections close."""
        node = self.nodes[node_id]
        node.raft = node.paused = None
        if power_loss:
            node.log.crash(self.randomness)
        for other in self.nodes.values():
            if other.id != node_id:
                self._close(other, node_id)

    def reset(self, a: int, b: int) -> None:
        """The connections between two nodes close, and what was asked through them comes to nothing."""
        self._close(self.nodes[a], b)
        self._close(self.nodes[b], a)

    def _close(self, node: Node, other_id: int) -> None:
        """This node sees its connections with another one close."""
        lost = self._under_way.pop((node.id, other_id), [])
        if node.raft is not None and not self._is_cut(other_id, node.id):
            delay_s = self._delay()
            self._event(node, on.Disconnected(other_id), delay_s)
            for end in lost:
                end(delay_s)

    def pause(self, node_id: int) -> None:
        """It stands still, and does not notice: its timers and whatever arrives wait."""
        node = self.nodes[node_id]
        if node.raft is not None and node.paused is None:
            node.paused = []

    def resume(self, node_id: int) -> None:
        node = self.nodes[node_id]
        waiting, node.paused = node.paused or [], None
        ticks = [e for e in waiting if isinstance(e, on.Tick)][:1]
        others = [e for e in waiting if not isinstance(e, on.Tick)]
        for event in ticks + others if self.randomness.random() < 0.5 else others + ticks:
            if node.raft is not None:
                self.step(node, event)

    def cut_off(self, *node_ids: int) -> None:
        """Nothing goes between these and the others."""
        for a in node_ids:
            for b in self.nodes:
                if b not in node_ids:
                    self.cut |= {(a, b), (b, a)}

    def heal(self) -> None:
        self.cut.clear()

    def write(self, node_id: int, count: int = 1) -> bool:
        """Append records of the active controller, if this node leads."""
        node = self.nodes[node_id]
        if node.raft is None or node.paused is not None or not node.raft.is_leader:
            return False
        values = []
        for _ in range(count):
            self.written += 1
            values.append((b"", b"value %d" % self.written))
        node.log.append(node.raft.epoch, values)
        self.step(node, on.LeaderAppended(node.log.end_offset))
        return True

    def snapshot(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.raft is None or node.raft.high_watermark is None:
            return
        ends = [
            b.next_offset
            for b in node.log.batches
            if b.next_offset <= min(node.raft.high_watermark, node.log.durable_end())
        ]
        if ends:
            node.log.take_snapshot(ends[-1])
            self._contents[node.log.start] = node.log.snapshots[node.log.start]

    def ask(self, node_id: int, request: Request) -> None:
        """A person asks; the answer goes to `responses`."""
        node = self.nodes[node_id]
        if node.raft is not None:
            self.step(node, on.Received(request, self.responses.append))

    def add_voter(self, leader_id: int, node_id: int) -> None:
        self.ask(leader_id, AddVoterRequest(key(node_id), {"CONTROLLER": address(node_id)}, 2.0))

    def remove_voter(self, leader_id: int, node_id: int) -> None:
        self.ask(leader_id, RemoveVoterRequest(key(node_id)))

    # Facts

    def leader(self) -> Node | None:
        """The one of the newest epoch."""
        leading = [n for n in self.nodes.values() if n.raft is not None and n.raft.is_leader]
        return max(leading, key=lambda n: n.raft.epoch if n.raft else 0, default=None)

    def running(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.raft is not None]

    # Steps

    def step(self, node: Node, event: on.Event) -> None:
        raft = node.raft
        assert raft is not None
        if node.paused is not None:
            node.paused.append(event)
            return
        was_leader = raft.is_leader
        effects = raft.step(event, self.now)
        raft.check_invariants()
        for effect in effects:
            if self.faults.crash and self.randomness.random() < self.faults.crash:
                self.crash(node.id, power_loss=self.randomness.random() < 0.7)
            if node.raft is not raft:
                return
            self._do(node, raft, effect, was_leader)
        if node.states[-1:] != [state := f"{raft.role}({raft.epoch})"]:
            node.states.append(state)
        self._tick_at(node, raft)
        self.invariants.check(self, node, became_leader=raft.is_leader and not was_leader)

    def _tick_at(self, node: Node, raft: Raft) -> None:
        deadline = raft.deadline
        if deadline < inf:

            def tick() -> None:
                if node.raft is raft and raft.deadline == deadline:
                    self.step(node, on.Tick())

            self.at(max(deadline, self.now), tick)

    def _event(self, node: Node, event: on.Event, delay_s: float) -> None:
        life = node.life

        def deliver() -> None:
            if node.raft is not None and node.life == life:
                self.step(node, event)

        self.at(self.now + delay_s, deliver)

    def _do(self, node: Node, raft: Raft, effect: do.Effect, was_leader: bool) -> None:
        log = node.log
        match effect:
            case do.Save(state):
                node.saved = state
            case do.SendRequest(to, request):
                self.invariants.said(node, request)
                self._send(node, to, request)
            case do.SendResponse(answer, response):
                self.invariants.said(node, response, getattr(answer, "request", None))
                answer(self._read_along(node, response, answer))
            case do.AppendControl(epoch, records):
                log.append(epoch, records, control=True)
                self._event(node, on.LeaderAppended(log.end_offset), 0.0)
            case do.AppendFetched(records):
                log.append_fetched(records)
                self._flush(node)
            case do.Truncate(end_offset):
                self.invariants.truncated(node, end_offset)
                node.told.append(f"truncated={end_offset}-{log.end_offset - 1}")
                log.truncate(end_offset)
            case do.Flush():
                self._flush(node)
            case do.HighWatermarkChanged(high_watermark):
                self.invariants.committed(self, node, high_watermark, by_leader=was_leader or raft.is_leader)
            case do.StoreChunk(snapshot_id, position, chunk):
                before = node.chunks.get(snapshot_id, b"") if position else b""
                assert len(before) == position
                node.chunks[snapshot_id] = before + chunk
            case do.FinishSnapshot(snapshot_id):
                self._install(node, snapshot_id)
            case do.LeaderChanged():
                pass
            case do.FailQuorum(reason):
                raise AssertionError(f"node {node.id} had to stop: {reason}")

    def _flush(self, node: Node) -> None:
        if node.flushing:
            return
        node.flushing = True
        life, truncations, end_offset = node.life, node.log.truncations, node.log.end_offset

        def done() -> None:
            if node.life != life or node.raft is None:
                return
            node.flushing = False
            if node.log.truncations == truncations:
                node.log.flush(end_offset)
                self.step(node, on.Flushed(end_offset))
            is_running = bool(node.raft)  # the step may have stopped it
            if is_running and node.log.flushed_offset < node.log.end_offset:
                self._flush(node)

        self.at(self.now + self.randomness.uniform(*self.faults.flush_s), done)

    def _install(self, node: Node, snapshot_id: OffsetAndEpoch) -> None:
        life = node.life

        def done() -> None:
            if node.life == life and node.raft is not None:
                assert not node.raft.is_leader, "a leader never loads a snapshot"
                content = self._contents[snapshot_id]
                assert node.chunks.pop(snapshot_id) == content.data
                node.log.install(snapshot_id, content)
                node.told.append(f"snapshot={snapshot_id.offset}")
                self.step(node, on.SnapshotLoaded(snapshot_id, content.voters, content.kraft_version))

        self.at(self.now + self._delay(), done)

    # The network

    def _delay(self) -> float:
        return self.randomness.uniform(*self.faults.delay_s)

    def _is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self.cut

    def _send(self, node: Node, to: on.Destination, request: Request) -> None:
        target = next(n for n in self.nodes.values() if address(n.id) == to.address)
        life = node.life
        ended = False

        def end(event: on.Event) -> None:
            nonlocal ended
            if not ended and node.raft is not None and node.life == life:
                ended = True
                if lost in (under_way := self._under_way.get((node.id, target.id), [])):
                    under_way.remove(lost)
                self.step(node, event)

        def lost(delay_s: float) -> None:
            self.at(self.now + delay_s, lambda: end(on.RequestUnanswered(to, request)))

        def respond(response: Response) -> None:
            if self._is_cut(target.id, node.id):
                return
            if self.randomness.random() < self.faults.loss:
                lost(self._delay())
                return
            self.at(self.now + self._delay(), lambda: end(on.Replied(to, request, response)))

        def arrive() -> None:
            if self._is_cut(node.id, target.id):
                return
            if target.raft is None:
                lost(self._delay())
            else:
                self.step(target, on.Received(request, Reply(respond, request)))

        lost(REQUEST_TIMEOUT_S)
        self._under_way.setdefault((node.id, target.id), []).append(lost)
        if self.randomness.random() < self.faults.loss:
            lost(self._delay())
            if self.randomness.random() < 0.5:
                return  # else it arrives, and only the response is lost
        self.at(self.now + self._delay(), arrive)
        if self.randomness.random() < self.faults.duplication:
            self.at(self.now + self._delay() * 5, arrive)

    def _read_along(self, node: Node, response: Response, answer: Any) -> Response:
        """Records and chunks are read when the answer is written."""
        if isinstance(response, RaftFetchResponse) and response.read_from is not None:
            assert isinstance(answer, Reply)
            return response._replace(
                records=node.log.read(response.read_from, answer.request.max_bytes), read_from=None
            )
        if isinstance(response, FetchSnapshotResponse) and response.error is ErrorCode.NONE:
            assert isinstance(answer, Reply)
            data = node.log.snapshots[response.snapshot_id].data
            return response._replace(chunk=data[response.position : response.position + answer.request.max_bytes])
        return response


class Reply:
    """Where an answer goes; the shell remembers what was asked."""

    def __init__(self, respond: Callable[[Response], None], request: Any) -> None:
        self.respond = respond
        self.request = request

    def __call__(self, response: Response) -> None:
        self.respond(response)
