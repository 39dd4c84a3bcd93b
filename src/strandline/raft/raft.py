"""Raft for the metadata log: one entrance for what happens, one list of what to do.

`step` takes an event and the time and returns effects, to be carried out in their order before the next event comes. It
never waits and never raises for anything that a peer may say. `deadline` says when a `Tick` is next worth it.

Always true: after each step everything that is due is done: requests that may go out are on their way, timers that ran out
have had their effect.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf
from typing import Final

from strandline.errors import ErrorCode
from strandline.raft import discovery, elections, following, handover, leading, reconfiguration, serving, tracking
from strandline.raft.core import Core
from strandline.raft.effects import Effect, Flush, SendResponse
from strandline.raft.election_state import ElectionState
from strandline.raft.events import (
    Cancelled,
    Destination,
    Disconnected,
    Event,
    Flushed,
    LeaderAppended,
    Received,
    Replied,
    RequestUnanswered,
    Resign,
    SnapshotLoaded,
    SnapshotRefused,
    Started,
    Tick,
)
from strandline.raft.log_view import LogView
from strandline.raft.messages import (
    NO_NODE,
    Address,
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    Endpoints,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    RemoveVoterRequest,
    ReplicaKey,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.outbox import Slot
from strandline.raft.replicas import QuorumDescription, ReplicaDescription, ReplicaState
from strandline.raft.serving import BOOTSTRAP_SNAPSHOT
from strandline.raft.states import (
    AnswerTo,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
)
from strandline.raft.timings import Timings
from strandline.raft.voter_history import NOT_IN_LOG, VoterHistory
from strandline.raft.voters import VoterSet

__all__ = ["QuorumDescription", "Raft", "ReplicaDescription", "Timings"]

TURNS_MAX: Final = 20
"""States that one step may go through, say from follower to leader of a quorum of one."""


class Raft:
    def __init__(
        self,
        me: ReplicaKey,
        *,
        own_endpoints: Endpoints,
        is_controller: bool,
        voters: VoterSet,
        voter_history: Sequence[tuple[int, VoterSet]] = (),
        kraft_version: int = 0,
        bootstrap: Sequence[Address] = (),
        log: LogView,
        state: ElectionState,
        timings: Timings,
        randomness: random.Random,
    ) -> None:
        """`voters` are those of the configuration or the latest snapshot; `voter_history`, those that the log names."""
        snapshot = log.latest_snapshot
        base_offset = NOT_IN_LOG if snapshot is None or snapshot == BOOTSTRAP_SNAPSHOT else snapshot.offset - 1
        if voter_history:
            base_offset = min(base_offset, voter_history[0][0] - 1)
        history = VoterHistory(voters, kraft_version, base_offset=base_offset, entries=voter_history)
        self._core = Core(
            me,
            own_endpoints=own_endpoints,
            is_controller=is_controller,
            history=history,
            bootstrap=bootstrap,
            log=log,
            election=state,
            timings=timings,
            randomness=randomness,
        )
        self.deadline = inf

    # Facts

    @property
    def me(self) -> ReplicaKey:
        return self._core.me

    @property
    def has_begun(self) -> bool:
        """It has had its first event."""
        return self._core.announced[0] >= 0

    @property
    def state(self) -> State:
        """Another object whenever the epoch, the leader or the role changes."""
        return self._core.state

    @property
    def committed(self) -> int | None:
        """The highest high watermark that was ever known here."""
        return self._core.committed

    @property
    def role(self) -> str:
        """The state by its name: Unattached, Prospective, Candidate, Follower, Leader or Resigned."""
        return type(self._core.state).__name__

    @property
    def is_leader(self) -> bool:
        return isinstance(self._core.state, Leader)

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def leader_id(self) -> int:
        return self._core.leader_id

    @property
    def high_watermark(self) -> int | None:
        """As this node knows it; a new leader does not until it has committed a record of its own epoch."""
        return self._core.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._core.voters

    @property
    def is_voter(self) -> bool:
        return self._core.is_voter

    @property
    def kraft_version(self) -> int:
        return self._core.history.kraft_version

    @property
    def epoch_start_offset(self) -> int | None:
        """Where the epoch of this leader began in its log; None on others."""
        state = self._core.state
        return state.epoch_start_offset if isinstance(state, Leader) else None

    @property
    def has_handed_over(self) -> bool:
        """Of a leader that resigned: every voter has its EndQuorumEpoch, and had a Fetch refused, which confirms it; or another
        epoch has begun."""
        state = self._core.state
        if isinstance(state, Resigned):
            return not (state.unacknowledged or state.not_yet_refused)
        return not isinstance(state, Leader)

    def leader_address(self) -> Address | None:
        return self._core.leader_address

    def describe(self, now: float) -> QuorumDescription:
        """What DescribeQuorum says; only the leader knows of the others' logs."""
        core, leader = self._core, self._core.state
        voters, observers = [], []
        for node in core.voters:
            state = leader.voters.get(node.key.id) if isinstance(leader, Leader) else None
            if node.key.id == core.me.id:
                state = ReplicaState(node.key, core.log.end_offset, now, now)
            voters.append(_description(state or ReplicaState(node.key), node.endpoints))
        if isinstance(leader, Leader):
            tracking.forget_silent_observers(leader, now)
            observers = [_description(state, {}) for state in leader.observers.values()]
            if not core.is_voter:
                observers.append(_description(ReplicaState(core.me, core.log.end_offset, now, now), core.own.endpoints))
        known = core.high_watermark
        return QuorumDescription(
            core.leader_id, core.epoch, -1 if known is None else known, tuple(voters), tuple(observers)
        )

    def check_invariants(self) -> None:
        """What must hold after a step, whether or not its effects are carried out yet; the simulator asks after each turn."""
        if not self.has_begun:
            return
        core, state = self._core, self._core.state
        core.check_invariants()
        if isinstance(state, Leader):
            tracking.check_invariants(core, state)
            serving.check_invariants(core, state)
            reconfiguration.check_invariants(core, state)
        elif isinstance(state, Follower):
            following.check_invariants(core, state)

    # Events

    def step(self, event: Event, now: float) -> list[Effect]:
        core = self._core
        core.begin_step()
        self._handle(event, now)
        self.deadline = self._poll(now)
        return core.effects

    def _handle(self, event: Event, now: float) -> None:
        core = self._core
        match event:
            case Tick():
                pass
            case Received(request, answer):
                self._received(request, answer, now)
            case Replied(to, request, response):
                if (slot := core.outbox.settle(request)) is not None:
                    self._replied(slot, to, request, response, now)
            case RequestUnanswered(_, request):
                if (slot := core.outbox.settle(request)) is not None:
                    self._unanswered(slot, now)
            case LeaderAppended():
                core.effects.append(Flush())
                if isinstance(core.state, Leader):
                    serving.answer_parked(core, core.state)
            case Flushed():
                if isinstance(core.state, Leader):
                    serving.advance(core, core.state)
            case Disconnected(node_id):
                self._disconnected(node_id, now)
            case Cancelled(answer):
                self._cancelled(answer)
            case SnapshotLoaded():
                following.snapshot_loaded(core, event)
            case SnapshotRefused():
                following.snapshot_refused(core, now)
            case Resign():
                core.stop()
                if isinstance(core.state, Leader):
                    leading.resign(core, core.state, now)
            case Started():
                self._start(now)

    def _start(self, now: float) -> None:
        """In the state before the stop, except that a leader does not lead again: it may have lost what was not flushed."""
        core, saved = self._core, self._core.election
        soon = now + core.timings.disconnect_grace_s * core.randomness.random()
        state: State = Unattached(soon)
        election, address = saved, None
        if saved.epoch < core.log.last_epoch:
            election = ElectionState(core.log.last_epoch)
        elif saved.leader_id == core.me.id:
            state = core.resigned((), now)
        elif saved.leader_id != NO_NODE:
            if (leader := core.voters.get(saved.leader_id)) is not None:
                state, address = Follower(now + core.timings.fetch_timeout_s), leader.address
            else:
                election = saved._replace(leader_id=NO_NODE)
        elif saved.voted == core.me and core.may_campaign:
            state = Candidate(now + core.election_timeout(), {core.me.id})
        core.begin(state, election, address)
        if core.is_only_voter and not isinstance(state, Candidate):
            core.to_prospective(now)
        if core.log.flushed_offset < core.log.end_offset:
            core.effects.append(Flush())

    def _poll(self, now: float) -> float:
        core = self._core
        for _ in range(TURNS_MAX):
            before = core.state
            deadline = self._poll_state(before, now)
            if core.state is before:
                return deadline
        return now

    def _poll_state(self, state: State, now: float) -> float:
        core = self._core
        match state:
            case Unattached():
                return elections.poll_unattached(core, state, now)
            case Prospective():
                return elections.poll_prospective(core, state, now)
            case Candidate():
                return elections.poll_candidate(core, state, now)
            case Follower():
                return following.poll(core, state, now)
            case Leader():
                deadline = leading.poll(core, state, now)
                return min(deadline, handover.announce(core, state, now)) if core.state is state else now
            case Resigned():
                return handover.poll_resigned(core, state, now)

    def _received(self, request: Request, answer: AnswerTo, now: float) -> None:
        core = self._core
        match request:
            case VoteRequest():
                elections.handle_vote(core, request, answer, now)
            case BeginQuorumEpochRequest():
                handover.handle_begin(core, request, answer, now)
            case EndQuorumEpochRequest():
                handover.handle_end(core, request, answer, now)
            case RaftFetchRequest():
                serving.handle_fetch(core, request, answer, now)
            case FetchSnapshotRequest():
                serving.handle_fetch_snapshot(core, request, answer, now)
            case AddVoterRequest() | RemoveVoterRequest() | UpdateVoterRequest():
                reconfiguration.handle(core, request, answer, now)
            case ApiVersionsRequest():
                core.effects.append(SendResponse(answer, ApiVersionsResponse(ErrorCode.NONE, core.own.kraft_versions)))

    def _replied(self, slot: Slot, asked: Destination, request: Request, response: Response, now: float) -> None:
        """The slot was still waiting, and slots are emptied with each change of state: the state is the request's."""
        core = self._core
        match core.state, request, response:
            case ((Prospective() | Candidate()), VoteRequest(), VoteResponse()):
                elections.handle_vote_response(core, slot[1], request, response, now)
            case _, RaftFetchRequest(), RaftFetchResponse() if slot in (discovery.SLOT, discovery.CONFIRM):
                discovery.handle_response(core, slot, asked.id, response, now)
            case Follower(), RaftFetchRequest(), RaftFetchResponse() if slot == following.PROBE:
                following.handle_probe_response(core, response, now)
            case Follower() as follower, RaftFetchRequest(), RaftFetchResponse():
                following.handle_fetch_response(core, follower, asked.address, request, response, now)
            case Follower() as follower, FetchSnapshotRequest(), FetchSnapshotResponse():
                following.handle_snapshot_response(core, follower, asked.address, response, now)
            case Follower(), UpdateVoterRequest(), QuorumEpochResponse():
                following.handle_update_voter_response(core, response, now)
            case Leader() as leader, BeginQuorumEpochRequest(), QuorumEpochResponse():
                handover.handle_begin_response(core, leader, slot[1], response, now)
            case Leader() as leader, ApiVersionsRequest(), ApiVersionsResponse():
                reconfiguration.handle_api_versions(core, leader, response, now)
            case Resigned() as resigned, EndQuorumEpochRequest(), QuorumEpochResponse():
                handover.handle_end_response(core, resigned, slot[1], response, now)
            case _:
                core.outbox.failed(slot, now)  # a response to another question

    def _unanswered(self, slot: Slot, now: float) -> None:
        core = self._core
        if slot == following.FETCH:
            following.unanswered(core, now)
        elif slot == reconfiguration.API_VERSIONS and isinstance(core.state, Leader):
            reconfiguration.handle_api_versions(core, core.state, None, now)
        else:
            core.outbox.failed(slot, now)

    def _disconnected(self, node_id: int, now: float) -> None:
        core = self._core
        voted = core.election.voted
        if isinstance(core.state, Follower) and node_id == core.election.leader_id:
            following.disconnected(core, now)
        elif isinstance(core.state, Unattached) and voted is not None and voted.id == node_id:
            elections.candidate_disconnected(core, core.state, now)

    def _cancelled(self, answer: AnswerTo) -> None:
        leader = self._core.state
        if isinstance(leader, Leader):
            serving.cancel(leader, answer)
            reconfiguration.cancel(leader, answer)


def _description(state: ReplicaState, endpoints: Endpoints) -> ReplicaDescription:
    end_offset = -1 if state.end_offset is None else state.end_offset
    return ReplicaDescription(state.key, end_offset, state.last_fetch_at, state.last_caught_up_at, endpoints)
