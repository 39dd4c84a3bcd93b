"""What the judges see of the quorum: each node's Raft, metadata log and image as they last were, and its disk.

Always true: looking changes nothing and draws no chance; a node that is down is seen as it last was; `durable_offset`
is what a node has had on its device at some time and has not cut since, so a power loss takes nothing below it. A node
at which nothing has changed is passed over: it is reported with the very `QuorumNodeState` of the last time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode
from strandline.histories.batches import LoggedBatch
from strandline.histories.coverage import ERROR, QUORUM, SNAPSHOT, Coverage
from strandline.histories.exchanges import BrokerExchange, FollowerFetches
from strandline.histories.outcome import Problem
from strandline.histories.transcript import Transcript
from strandline.histories.wire import QuorumMessage
from strandline.metadata.image import MetadataImage
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.voters import VoterSet

T = TypeVar("T")
LEADER = "leader"
QUIET_S = 3.0


class Violation(AssertionError):
    """What must always hold does not; the history ends here."""

    problem: Problem
    """Known once it left the judge that found it."""


class QuorumNodeState(NamedTuple):
    """One node at one instant."""

    life: int
    """Rises with each start of its process."""
    role: str
    epoch: int
    leader_id: int
    high_watermark: int | None
    voters: VoterSet
    log_start_offset: int
    log_end_offset: int
    flushed_offset: int
    image: MetadataImage
    pending_end: int = -1
    """Where the newest decision ends that is not answered yet; -1 if there is none."""
    snapshot: OffsetAndEpoch | None = None
    """The newest."""

    @property
    def leads(self) -> bool:
        return self.role == LEADER


class ObservedMember(Protocol):
    """One node beside its part in the quorum: its process, configuration, answers, and its disk as the quorum uses
    it."""

    @property
    def config(self) -> NodeConfig: ...

    @property
    def is_running(self) -> bool:
        """Its process is there, and is not paused."""

    def check_invariants(self) -> None:
        """Of what it keeps of the quorum; AssertionError."""

    def snapshots(self) -> Sequence[OffsetAndEpoch]: ...

    def durable_end(self) -> int:
        """The end of what a power loss would leave of the log, whatever else it takes."""

    def batches(self, offset: int, limit_offset: int) -> Iterator[LoggedBatch]:
        """The batches of the log from the one that holds `offset` on, as far as they begin below the limit."""

    def error_counts(self) -> Mapping[int, int]:
        """How often it answered which error code, in all its lives."""


class QuorumJudge:
    """One property of the quorum or the metadata. It raises Violation; what it does not override it does not care
    for."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        """A node is not as it was. `before` is None the first time, and after it lost its disk."""

    def persisted(
        self, observed: QuorumObservation, node_id: int, before: ElectionState | None, after: ElectionState
    ) -> None:
        """A node put another election state on its disk."""

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        """A message of the quorum leaves a node."""

    def answered(self, observed: QuorumObservation, node_id: int, port: int, frame: bytes) -> None:
        """A broker that has two listeners has answered something on one of them."""

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        """A node loses its disk, and will come back as if it were new; it is still seen as it was."""

    def finished(self, observed: QuorumObservation) -> Iterable[str]:
        """All faults are undone and all nodes have caught up: what is not as it should be now."""
        return ()

    def __repr__(self) -> str:
        return type(self).__name__


class QuorumObservation:
    def __init__(
        self,
        judges: Sequence[QuorumJudge],
        transcript: Transcript,
        *,
        now: Callable[[], float] = lambda: 0.0,
        coverage: Coverage | None = None,
    ) -> None:
        self.nodes: dict[int, QuorumNodeState] = {}
        self.elections: dict[int, ElectionState] = {}
        self.members: dict[int, ObservedMember] = {}
        self.durable_offset: dict[int, int] = {}
        self.transcript = transcript
        self.now = now
        self.coverage = Coverage() if coverage is None else coverage
        self.on_forget: list[Callable[[int], None]] = []
        self.on_exchange: list[Callable[[int, BrokerExchange], None]] = []
        """A broker has answered."""
        self.image = MetadataImage()
        """The newest that any node has had."""
        self.disturbed_at = 0.0
        """When a fault was last injected or undone."""
        self.fetches = FollowerFetches()
        self.is_cut: Callable[[int, int], bool] = lambda one, other: False
        """Whether two nodes do not reach each other, one way or both."""
        self._judges = list(judges)
        self._changed = overriding(self._judges, QuorumJudge, "changed")
        self._persisted = overriding(self._judges, QuorumJudge, "persisted")
        self._sent = overriding(self._judges, QuorumJudge, "sent")
        self._answered = overriding(self._judges, QuorumJudge, "answered")

    # What is reported

    def see(self, node_id: int, after: QuorumNodeState) -> None:
        before = self.nodes.get(node_id)
        if before is after or before == after:
            return
        self.nodes[node_id] = after
        if after.image.end_offset > self.image.end_offset:
            self.image = after.image
        durable = self.durable_offset.get(node_id, 0)
        self._count(before, after)
        self._narrate(node_id, before, after)
        # What survived is judged by what was safe before; what is committed, by what is safe now.
        self.durable_offset[node_id] = min(max(durable, after.flushed_offset), after.log_end_offset)
        self.safe_before = durable
        for judge in self._changed:
            try:
                judge.changed(self, node_id, before, after)
            except Violation as violation:
                self.fail(judge, node_id, violation)

    safe_before = 0
    """While a change of a node is judged: up to where its device held its log before that."""

    def see_election_state(self, node_id: int, after: ElectionState) -> None:
        before = self.elections.get(node_id)
        if before == after:
            return
        self.elections[node_id] = after
        for judge in self._persisted:
            try:
                judge.persisted(self, node_id, before, after)
            except Violation as violation:
                self.fail(judge, node_id, violation)

    def see_sent(self, sent: QuorumMessage) -> None:
        if sent.exchange is not None:
            for hear in self.on_exchange:
                hear(sent.source, sent.exchange)
            return
        if sent.is_vote_granted:
            kind = "grants a pre-vote to" if sent.pre_vote else "votes for"
            self.transcript.note(f"n{sent.source}", f"{kind} n{sent.candidate_id}, epoch {sent.epoch}")
        for judge in self._sent:
            try:
                judge.sent(self, sent)
            except Violation as violation:
                self.fail(judge, sent.source, violation)

    def see_answer(self, node_id: int, port: int, frame: bytes) -> None:
        for judge in self._answered:
            try:
                judge.answered(self, node_id, port, frame)
            except Violation as violation:
                self.fail(judge, node_id, violation)

    def forget(self, node_id: int) -> None:
        """The node lost its disk."""
        for judge in self._judges:
            judge.wiped(self, node_id)
        for forget in self.on_forget:
            forget(node_id)
        self.nodes.pop(node_id, None)
        self.elections.pop(node_id, None)
        self.durable_offset.pop(node_id, None)

    def finish(self) -> list[Problem]:
        """The history is over: what the judges say of its end. Counts the errors that nodes answered."""
        for member in self.members.values():
            for code, count in member.error_counts().items():
                self.coverage.note(ERROR, ErrorCode(code).name, count)
        return [Problem(repr(judge), self.now(), what) for judge in self._judges for what in judge.finished(self)]

    def fail(self, judge: object, node_id: int, violation: Violation, where: str = "") -> None:
        """End the history: what a judge found becomes a problem with its property and its moment."""
        if hasattr(violation, "problem"):
            raise violation  # from a judge within this one
        violation.problem = Problem(repr(judge), self.now(), f"n{node_id}: {where}{violation}")
        self.transcript.note(f"n{node_id}", f"VIOLATES {violation.problem.property}: {where}{violation}")
        violation.args = (str(violation.problem),)
        raise violation

    # Facts

    @property
    def leader(self) -> int | None:
        """Who leads in the newest epoch that any node leads in, up or down."""
        leaders = [(seen.epoch, node_id) for node_id, seen in self.nodes.items() if seen.leads]
        return max(leaders)[1] if leaders else None

    @property
    def high_watermark(self) -> int:
        """The greatest that any node knows of."""
        return max((seen.high_watermark or 0 for seen in self.nodes.values()), default=0)

    def is_running(self, node_id: int) -> bool:
        """Its process is there, and is not paused."""
        return self.members[node_id].is_running

    def fetch_timeout_s(self, node_id: int) -> float:
        """After how long without an answer a voter believes its leader to be gone."""
        return self.members[node_id].config.controller_quorum_fetch_timeout_ms / 1000

    def session_s(self, node_id: int) -> float:
        """After how long without a heartbeat a broker is fenced."""
        return self.members[node_id].config.broker_session_timeout_ms / 1000

    @property
    def is_quiet(self) -> bool:
        """No fault was injected or undone for a while."""
        return self.now() - self.disturbed_at > QUIET_S

    # For the transcript and the coverage

    def _count(self, before: QuorumNodeState | None, after: QuorumNodeState) -> None:
        """What happened to a node within one life."""
        if before is None or before.life != after.life:
            return
        note = self.coverage.note
        if before.role != after.role:
            note(QUORUM, f"{before.role} -> {after.role}")
        if after.leads and (not before.leads or before.epoch != after.epoch):
            note(QUORUM, "election")
        if after.log_end_offset < before.log_end_offset:
            note(QUORUM, "truncation")
        if after.snapshot != before.snapshot and after.snapshot is not None:
            # What a node writes down itself is in its log; what it fetches lies ahead of it.
            note(SNAPSHOT, "fetched" if after.snapshot.offset > before.log_end_offset else "taken")
        if before.voters is not after.voters and before.voters != after.voters:
            note(QUORUM, "voters changed")

    def _narrate(self, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState) -> None:
        note = self.transcript.note
        who = f"n{node_id}"
        if before is None or before.life != after.life:
            note(who, f"loads its log {after.log_start_offset}-{after.log_end_offset}, epoch {after.epoch}")
            before = after._replace(role="", high_watermark=after.high_watermark, leader_id=-2)
        if (before.role, before.epoch) != (after.role, after.epoch):
            note(who, f"{after.role}, epoch {after.epoch}, log end {after.log_end_offset}")
        elif before.leader_id != after.leader_id:
            note(who, f"{after.role}, epoch {after.epoch}, leader {after.leader_id}")
        if after.leads and before.high_watermark != after.high_watermark and after.high_watermark is not None:
            note(who, f"commits to {after.high_watermark}")
        if after.log_end_offset < before.log_end_offset:
            note(who, f"truncates {before.log_end_offset} to {after.log_end_offset}")
        if after.log_start_offset != before.log_start_offset:
            note(who, f"log start {before.log_start_offset} to {after.log_start_offset}")
        if before.voters is not after.voters and before.voters != after.voters:
            note(who, f"voters {sorted(before.voters.ids)} to {sorted(after.voters.ids)}")


def overriding(judges: Iterable[T], base: type, name: str) -> list[T]:
    """Those judges that override the method of an event."""
    return [judge for judge in judges if getattr(type(judge), name) is not getattr(base, name)]
