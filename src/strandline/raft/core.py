"""What all parts of Raft share, and the only place where the state changes.

Always true: the election state is saved before anything that follows from it is said (D1): `Save` stands before it among the
effects. The epoch never falls. A leader that stops leading answers every request that still waits for it. What stands here is
written by the methods here alone; a field of a state, by the one module that serves that state (`tests/unit/raft/test_owners.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf
from typing import Final

from strandline.errors import ErrorCode
from strandline.raft.effects import (
    Effect,
    FailQuorum,
    FinishSnapshot,
    HighWatermarkChanged,
    LeaderChanged,
    Save,
    SendResponse,
    Truncate,
)
from strandline.raft.election_state import ElectionState
from strandline.raft.log_view import LogView
from strandline.raft.messages import (
    NO_NODE,
    Address,
    Endpoints,
    OffsetAndEpoch,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    ReplicaKey,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from strandline.raft.outbox import Outbox
from strandline.raft.states import (
    TRANSITIONS,
    AnswerTo,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
    VoterChange,
)
from strandline.raft.timings import Timings
from strandline.raft.voter_history import VoterHistory
from strandline.raft.voters import VoterNode, VoterSet

EPOCH_MAX: Final = 2**31 - 1
"""No node can lead it, since no epoch could follow it: a message that claims it is not believed."""
EPOCH_STEP_MAX: Final = 2**20
"""A request is not believed to be so many epochs ahead: one request of a stranger would use all of them up. A node that was
away for that long learns the epoch from the responses to its own requests."""
KRAFT_VERSIONS: Final = range(2)
"""The kraft.versions that we know."""


class Core:
    def __init__(
        self,
        me: ReplicaKey,
        *,
        own_endpoints: Endpoints,
        is_controller: bool,
        history: VoterHistory,
        bootstrap: Sequence[Address],
        log: LogView,
        election: ElectionState,
        timings: Timings,
        randomness: random.Random,
    ) -> None:
        self.me = me
        self.own = VoterNode(me, own_endpoints, KRAFT_VERSIONS)
        self.is_controller = is_controller
        self.history = history
        self.bootstrap = tuple(bootstrap)
        self.log = log
        self.election = election
        self.timings = timings
        self.randomness = randomness
        self.outbox = Outbox(timings.retry_backoff_s, randomness)
        self.effects: list[Effect] = []
        self.state: State = Unattached(inf)
        self._learned_address: Address | None = None
        """Where the leader is if the voters' record does not name it."""
        self.reported_address: Address | None = None
        """Where some message says that the leader is, if the voters' record says otherwise (SEC-Z16)."""
        self.failed_fetches = 0
        """To this leader in a row, since it last answered at the address of its record; in whatever epochs."""
        self._fetched_from = NO_NODE
        self.leader_lost = False
        """A Fetch to the leader came to nothing, or the leader said that it leads no more; and it has not answered since."""
        self.committed: int | None = None
        """The highest high watermark that this node has known; a leader's own may not be known yet (D6)."""
        self.failed_rounds = 0
        """Elections lost in a row."""
        self.installing: OffsetAndEpoch | None = None
        """A snapshot is being put in place: the log is about to be replaced, and this node neither leads nor fetches meanwhile."""
        self.is_truncating = False
        """The log is cut as soon as the effects of this step are carried out."""
        self.is_stopping = False
        self.announced = (-1, NO_NODE)
        """The epoch and its leader, as last said in `LeaderChanged`."""

    # Facts

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        """Of this epoch, as far as is known; a leader that resigned is none."""
        return NO_NODE if isinstance(self.state, Resigned) else self.election.leader_id

    @property
    def leader_address(self) -> Address | None:
        """As other nodes get it: the address of the voters' record, and only for a leader that is not in it the one that was
        learnt together with it."""
        if self.leader_id == NO_NODE:
            return None
        if self.leader_id == self.me.id:
            return self.own.address
        recorded = self.voters.get(self.leader_id)
        return self._learned_address if recorded is None else recorded.address

    @property
    def asks_reported_address(self) -> bool:
        """Whether the next Fetch goes there: from the second failure in a row on, every other one does. The leader may have
        moved since the voters' record was written; but any client can claim that."""
        return self.reported_address is not None and self.failed_fetches >= 2 and self.failed_fetches % 2 == 0

    # The leader, as its answers show it

    def leader_is_gone(self) -> None:
        """A Fetch to the leader failed, or the leader said that it leads no more."""
        self.leader_lost = True

    def leader_is_alive(self) -> None:
        """The leader has answered, or a voter has heard it."""
        self.leader_lost = False

    def fetch_failed(self) -> None:
        """A Fetch to the leader came to nothing: at that address it may not be found any more."""
        self.failed_fetches += 1

    def fetch_refused(self, replica_id: int) -> None:
        """This node led its epoch and has refused a Fetch since: now that replica has the proof that it resigned."""
        if isinstance(self.state, Resigned):
            self.state.not_yet_refused.discard(replica_id)

    def answered_at(self, address: Address) -> None:
        """The leader has answered a Fetch. At the reported address it is asked again as long as it answers there."""
        if address == self.leader_address:
            self.reported_address = None
            self.failed_fetches = 0

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.is_controller and self.voters.is_voter(self.me)

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.voters) == 1

    @property
    def may_campaign(self) -> bool:
        return self._is_electable and not self.is_stopping and self.installing is None

    @property
    def _is_electable(self) -> bool:
        """A voter; or one whose removal is not committed yet. If only its log knows of that, only it can be elected to
        commit it, by the votes of the others: of two voters, the one that stays could not win against a newer log."""
        before = self.history.voters_before
        return self.is_voter or (
            self.is_controller
            and before is not None
            and before.is_voter(self.me)
            and self.history.voters_offset >= (self.committed or 0)
        )

    @property
    def is_in_touch(self) -> bool:
        """It leads, or its leader answers it: then a request unseats no leader, only a response does (SEC-Z16). A leader that a
        majority no longer fetches from resigns by itself (D5)."""
        state = self.state
        return isinstance(state, Leader) or (isinstance(state, Follower) and state.has_fetched and not self.leader_lost)

    def is_known_voter(self, key: ReplicaKey) -> bool:
        """A voter, as far as this node knows; of one that does not say its directory the id is enough."""
        node = self.voters.get(key.id)
        return node is not None and (not any(key.directory_id) or self.voters.is_voter(key))

    def check_invariants(self) -> None:
        """What the state and the election say of each other; once Raft has begun."""
        state, (epoch, leader_id, voted) = self.state, self.election
        where = f"{type(state).__name__} in epoch {epoch} of leader {leader_id}, voted {voted}"
        assert self.announced == (self.epoch, self.leader_id), f"{where}, but said {self.announced}"
        match state:
            case Unattached():
                assert leader_id == NO_NODE, where
            case Prospective(granted=granted, rejected=rejected):
                assert self.me.id in granted, where
                assert not granted & rejected, f"{where}: granted {granted}, rejected {rejected}"
            case Candidate(granted=granted, rejected=rejected):
                assert leader_id == NO_NODE, where
                assert voted == self.me, where
                assert self.me.id in granted, where
                assert not granted & rejected, f"{where}: granted {granted}, rejected {rejected}"
            case Follower():
                assert leader_id not in (NO_NODE, self.me.id), where
                assert self.leader_address is not None, where
            case Leader() | Resigned():
                assert leader_id == self.me.id, where
        if self.installing is not None:
            assert not isinstance(state, (Prospective, Candidate, Leader)), (
                f"{where} while {self.installing} is put in place"
            )
        self.history.check_invariants()

    @property
    def high_watermark(self) -> int | None:
        return self.state.high_watermark if isinstance(self.state, Leader) else self.committed

    @property
    def floor(self) -> int:
        """Below this everything is committed, so nothing is ever cut (D10)."""
        snapshot = self.log.latest_snapshot
        return max(self.log.start_offset, self.committed or 0, snapshot.offset if snapshot else 0)

    @property
    def is_on_device(self) -> bool:
        """The whole log is. Only then may a Fetch leave, to any node: what it says counts as safe on this node's device (D8)."""
        return self.log.flushed_offset >= self.log.end_offset

    def fetch_request(self, max_wait_s: float) -> RaftFetchRequest:
        assert self.is_on_device
        return RaftFetchRequest(
            self.me,
            self.epoch,
            self.log.end_offset,
            self.log.last_epoch,
            max_wait_s,
            high_watermark=-1 if self.committed is None else self.committed,
            max_bytes=self.timings.fetch_max_bytes,
        )

    def other_voters(self) -> list[VoterNode]:
        return [node for node in self.voters if node.key.id != self.me.id]

    def has_majority(self, ids: set[int]) -> bool:
        return sum(node_id in ids for node_id in self.voters.ids) >= self.voters.majority

    def election_timeout(self) -> float:
        return self.timings.election_timeout_s * (1 + self.randomness.random())

    def round_backoff(self) -> float:
        """After so many lost rounds; at random, so that two nodes that lost together do not try again together."""
        longest = self.timings.disconnect_grace_s * 2.0 ** min(self.failed_rounds, 30)
        return min(longest, self.timings.election_backoff_max_s) * self.randomness.uniform(0.5, 1.0)

    def round_lost(self) -> None:
        """An election, or a pre-vote, was lost: the next one comes after a longer wait."""
        self.failed_rounds += 1

    def rounds_are_over(self) -> None:
        """There is a leader again."""
        self.failed_rounds = 0

    # Transitions

    def begin_step(self) -> None:
        """The effects of the last step are carried out."""
        self.effects = []
        self.is_truncating = False

    def stop(self) -> None:
        """The node is about to stop: it leads and campaigns no more."""
        self.is_stopping = True

    def to_unattached(self, epoch: int, campaign_at: float, voted: ReplicaKey | None = None) -> None:
        """A newer epoch, or this one with a vote, or this one after a lost pre-vote: what was voted is kept."""
        assert epoch >= self.epoch
        if epoch == self.epoch:
            voted = voted or self.election.voted
        self._enter(Unattached(campaign_at), ElectionState(epoch, NO_NODE, voted))

    def to_prospective(self, now: float) -> None:
        assert self.may_campaign
        self._enter(Prospective(now + self.election_timeout(), {self.me.id}), self.election)

    def to_candidate(self, now: float) -> None:
        assert self.may_campaign
        if self.epoch + 1 >= EPOCH_MAX:
            self.fail(f"epoch {self.epoch} is the last one")
            return
        self._enter(
            Candidate(now + self.election_timeout(), {self.me.id}), ElectionState(self.epoch + 1, NO_NODE, self.me)
        )

    def to_follower(self, epoch: int, leader_id: int, address: Address, now: float) -> None:
        assert leader_id not in (NO_NODE, self.me.id)
        assert epoch >= self.epoch
        if (epoch, leader_id) != (self.epoch, self.election.leader_id):
            self.leader_is_alive()
        if leader_id != self._fetched_from:
            self._fetched_from, self.failed_fetches = leader_id, 0
        voted = self.election.voted if epoch == self.epoch else None
        follower = Follower(now + self.timings.fetch_timeout_s)
        self._enter(follower, ElectionState(epoch, leader_id, voted), address)

    def to_leader(self, leader: Leader) -> None:
        self.rounds_are_over()
        self._enter(leader, self.election._replace(leader_id=self.me.id))

    def to_resigned(self, leader: Leader, successors: tuple[ReplicaKey, ...], now: float) -> None:
        resigned = self.resigned(successors, now)
        resigned.not_yet_refused = resigned.unacknowledged - {parked.request.replica.id for parked in leader.parked}
        self._enter(resigned, self.election)

    def resigned(self, successors: tuple[ReplicaKey, ...], now: float) -> Resigned:
        others = {node.key.id for node in self.other_voters()}
        return Resigned(now + self.election_timeout(), successors, others)

    def is_believable(self, epoch: int) -> bool:
        """Whether an epoch that a request claims can be."""
        return epoch < EPOCH_MAX and epoch - self.epoch <= EPOCH_STEP_MAX

    def learn(self, epoch: int, leader_id: int, address: Address | None, now: float) -> bool:
        """A node that this node asked, or has voted for, says that this is the epoch, and who leads it. Whether that made a
        difference. The address of a voter is the one in its own record (SEC-Z16)."""
        if not self.epoch <= epoch < EPOCH_MAX:
            return False
        if leader_id == self.me.id:
            if epoch == self.epoch:
                return False
            # It has led this epoch and forgotten it. It must not vote in it, as if it had not.
            self._enter(self.resigned((), now), ElectionState(epoch, self.me.id, self.me))
            return True
        reported = address
        if leader_id != NO_NODE and (known := self.voters.get(leader_id)) is not None:
            address = known.address
        if epoch > self.epoch:
            if leader_id == NO_NODE or address is None:
                self.to_unattached(epoch, self._campaign_at(now))
                return True
            self.to_follower(epoch, leader_id, address, now)
        elif leader_id != NO_NODE and address is not None and self.election.leader_id == NO_NODE:
            self.to_follower(epoch, leader_id, address, now)
        else:
            return False
        self.report_address(leader_id, reported)
        return True

    def report_address(self, leader_id: int, reported: Address | None) -> None:
        """Where the leader is said to be. Configured voters are where the configuration says."""
        is_other = reported is not None and reported != self.leader_address
        if is_other and leader_id == self.election.leader_id and self.history.kraft_version > 0:
            self.reported_address = reported

    def _campaign_at(self, now: float) -> float:
        """In a newer epoch: a node that waited for an election already does not wait longer for it."""
        match self.state:
            case Unattached(campaign_at=at):
                return at
            case Candidate(ends_at=at) | Prospective(ends_at=at) | Resigned(ends_at=at):
                return at
            case _:
                return now + self.election_timeout()

    def begin(self, state: State, election: ElectionState, address: Address | None = None) -> None:
        """The state to start in, which comes from no other."""
        self.state = state
        self._learned_address = address
        self._remember(election)

    def _enter(self, state: State, election: ElectionState, address: Address | None = None) -> None:
        before = self.state
        assert type(state) in TRANSITIONS[type(before)], f"from {before} to {state}"
        assert election.epoch >= self.epoch
        self.state = state
        if (election.epoch, election.leader_id) != (self.epoch, self.election.leader_id):
            self.reported_address = None
            self._learned_address = None
        if address is not None:
            self._learned_address = address
        self.outbox.clear()
        self._remember(election)
        if isinstance(before, Leader):
            self._dismiss(before)

    def _remember(self, election: ElectionState) -> None:
        if election != self.election:
            self.election = election
            self.effects.append(Save(election))
        if (current := (self.epoch, self.leader_id)) != self.announced:
            self.announced = current
            self.effects.append(LeaderChanged(*current))

    def _dismiss(self, leader: Leader) -> None:
        for parked in leader.parked:
            self.answer(parked.answer, self.fetch_error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if leader.change is not None:
            self.answer_change(leader.change, ErrorCode.NOT_LEADER_OR_FOLLOWER, "The leader changed meanwhile")

    # Effects

    def commit(self, high_watermark: int) -> None:
        if self.committed is None or high_watermark > self.committed:
            self.committed = high_watermark
            self.effects.append(HighWatermarkChanged(high_watermark))

    def truncate(self, end_offset: int) -> None:
        """Cut the log and what it said of the voters; no Fetch leaves before that is done."""
        self.history.truncate(end_offset)
        self.effects.append(Truncate(end_offset))
        self.is_truncating = True

    def begin_install(self, snapshot_id: OffsetAndEpoch) -> None:
        """All chunks of a snapshot are here: it takes the place of the log."""
        self.installing = snapshot_id
        self.effects.append(FinishSnapshot(snapshot_id))

    def end_install(self) -> None:
        """The snapshot is in its place, or was refused."""
        self.installing = None

    def fail(self, reason: str) -> None:
        self.effects.append(FailQuorum(reason))

    def answer(self, answer: AnswerTo, response: RaftFetchResponse | QuorumEpochResponse | VoterChangeResponse) -> None:
        self.effects.append(SendResponse(answer, response))

    def fetch_error(self, error: ErrorCode) -> RaftFetchResponse:
        return RaftFetchResponse(error, self.epoch, self.leader_id, leader_address=self.leader_address)

    def quorum_response(self, error: ErrorCode, asked_in_epoch: int = -1) -> QuorumEpochResponse:
        if self.answers_in_epoch_of(asked_in_epoch, error):
            return QuorumEpochResponse(error, asked_in_epoch, NO_NODE)
        return QuorumEpochResponse(error, self.epoch, self.leader_id, self.leader_address)

    def answers_in_epoch_of(self, asked_in_epoch: int, error: ErrorCode) -> bool:
        """Whether to answer in the epoch of a request that this node has not taken over: Kafka drops an answer of an older epoch
        unread, and asks again at once. But of INVALID_REQUEST in its own epoch it dies."""
        return asked_in_epoch > self.epoch and error is not ErrorCode.INVALID_REQUEST

    def answer_change(self, change: VoterChange, error: ErrorCode, message: str | None = None) -> None:
        """Answer the request to change the voters, if that has not been done."""
        if change.answer is None:
            return
        if isinstance(change.request, UpdateVoterRequest):
            self.answer(change.answer, self.quorum_response(error))
        else:
            self.answer(change.answer, VoterChangeResponse(error, message))
        change.answer = None
