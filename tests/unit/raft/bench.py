"""One Raft on the workbench: events are put in by hand, effects are carried out on a memory log and kept to look at.

Always true: nothing is flushed, answered or delivered unless the test says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import inf
from typing import TypeVar

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.core import KRAFT_VERSIONS
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    RaftFetchRequest,
    RaftFetchResponse,
    ReplicaKey,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.raft import Raft
from strandline.raft.timings import Timings
from strandline.raft.voters import VoterNode, VoterSet
from tests.unit.raft.cluster import address, key
from tests.unit.raft.memory_log import MemoryLog

NONE = ErrorCode.NONE
T = TypeVar("T")
E = TypeVar("E")


class Bench:
    def __init__(
        self,
        voters: Iterable[int] = (1, 2, 3),
        *,
        me: int = 1,
        is_controller: bool = True,
        kraft_version: int = 0,
        state: ElectionState = ElectionState(),  # noqa: B008
        log: MemoryLog | None = None,
        bootstrap: Iterable[int] = (),
        timings: Timings = Timings(),  # noqa: B008
        seed: int = 0,
        start: bool = True,
    ) -> None:
        self.log = log or MemoryLog()
        self.now = 100.0
        self.saved = state
        self.effects: list[do.Effect] = []
        """Of the last step."""
        self.under_way: list[do.SendRequest] = []
        named, version = self.log.history()
        self.raft = Raft(
            key(me),
            own_endpoints={"CONTROLLER": address(me)},
            is_controller=is_controller,
            voters=VoterSet(self.voter(n, kraft_version) for n in voters),
            voter_history=named,
            kraft_version=kraft_version if version is None else version,
            bootstrap=[address(n) for n in bootstrap],
            log=self.log,
            state=state,
            timings=timings,
            randomness=random.Random(seed),
        )
        if start:
            self.step(on.Started())

    @staticmethod
    def voter(node_id: int, kraft_version: int) -> VoterNode:
        endpoints = {"CONTROLLER": address(node_id)}
        if kraft_version:
            return VoterNode(key(node_id), endpoints, KRAFT_VERSIONS)
        return VoterNode(ReplicaKey(node_id), endpoints)

    # Putting in

    def step(self, event: on.Event) -> list[do.Effect]:
        self.effects = self.raft.step(event, self.now)
        for effect in self.effects:
            match effect:
                case do.Save(state):
                    self.saved = state
                case do.SendRequest():
                    self.under_way.append(effect)
                case do.AppendControl(epoch, records):
                    self.log.append(epoch, records, control=True)
                case do.AppendFetched(records):
                    self.log.append_fetched(records)
                case do.Truncate(end_offset):
                    self.log.truncate(end_offset)
                case _:
                    pass
        self.raft.check_invariants()
        return self.effects

    def wait(self, seconds: float = 0.0) -> list[do.Effect]:
        """Until then, with a Tick at each deadline; the effects of all of them."""
        until, effects = self.now + seconds, []
        while self.raft.deadline <= until:
            self.now = max(self.now, self.raft.deadline)
            effects += self.step(on.Tick())
        self.now = until
        self.effects = effects
        return effects

    def wait_for(self, role: str, at_most: float = 10.0) -> float:
        """Let time pass until it is in this state; how long that took."""
        began = self.now
        while self.raft.role != role:
            assert self.raft.deadline - began <= at_most, f"still {self.raft.role}"
            self.now = max(self.now, self.raft.deadline)
            self.step(on.Tick())
        return self.now - began

    def ask(self, request: Request) -> Response | None:
        """What is answered at once; None if the answer is kept for later."""
        given: list[Response] = []
        self.answer = given.append
        self.step(on.Received(request, self.answer))
        return self.answered()

    def answered(self) -> Response | None:
        """What was answered to the last request in the last step."""
        found = [e.response for e in self.effects if isinstance(e, do.SendResponse) and e.answer is self.answer]
        return found[-1] if found else None

    def flush(self) -> list[do.Effect]:
        self.log.flush(self.log.end_offset)
        return self.step(on.Flushed(self.log.end_offset))

    def write(self, count: int = 1) -> list[do.Effect]:
        self.log.append(self.raft.epoch, [(b"", b"value")] * count)
        return self.step(on.LeaderAppended(self.log.end_offset))

    def reply(self, request: Request, response: Response) -> list[do.Effect]:
        send = next(s for s in self.under_way if s.request is request)
        self.under_way.remove(send)
        return self.step(on.Replied(send.to, request, response))

    def lose(self, request: Request) -> list[do.Effect]:
        send = next(s for s in self.under_way if s.request is request)
        self.under_way.remove(send)
        return self.step(on.RequestUnanswered(send.to, request))

    def lose_leader(self) -> list[do.Effect]:
        """The connections to the leader close, and with them goes the Fetch."""
        self.step(on.Disconnected(self.raft.leader_id))
        return self.lose(self.fetch())

    # Looking

    def sent(self, kind: type[T]) -> list[T]:
        """The requests of this kind that wait for their answer and are of this epoch."""
        return [
            s.request
            for s in self.under_way
            if isinstance(s.request, kind) and getattr(s.request, "epoch", self.raft.epoch) == self.raft.epoch
        ]

    def votes(self, *, pre_vote: bool) -> dict[int, VoteRequest]:
        return {r.voter.id: r for r in self.sent(VoteRequest) if r.pre_vote is pre_vote}

    def fetch(self) -> RaftFetchRequest:
        """The Fetch that is under way to the leader."""
        (request,) = [r for r in self.sent(RaftFetchRequest) if r.max_wait_s > 0]
        return request

    def sign_of_life(self) -> RaftFetchRequest:
        """The Fetch that asks a leader that may be gone; time passes until it is under way."""
        while not (asked := [r for r in self.sent(RaftFetchRequest) if self._receiver(r) == self.raft.leader_id]):
            self.wait(0.001)
        return asked[0]

    def _receiver(self, request: Request) -> int:
        return next(s.to.id for s in self.under_way if s.request is request)

    def snapshot_fetch(self) -> FetchSnapshotRequest:
        (request,) = self.sent(FetchSnapshotRequest)
        return request

    def kinds(self) -> list[type]:
        return [type(effect) for effect in self.effects]

    def of(self, kind: type[E]) -> list[E]:
        """The effects of this kind of the last step."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    # Getting somewhere

    def vote(self, granted: bool, *, leader: int = -1, epoch: int | None = None) -> VoteResponse:
        known = address(leader) if leader >= 0 else None
        return VoteResponse(NONE, self.raft.epoch if epoch is None else epoch, leader, granted, known)

    def become_leader(self) -> None:
        """By the vote of node 2; its first record is flushed here."""
        self.wait_for("Prospective")
        self.reply(self.votes(pre_vote=True)[2], self.vote(True))
        self.reply(self.votes(pre_vote=False)[2], self.vote(True))
        assert self.raft.role == "Leader"
        self.step(on.LeaderAppended(self.log.end_offset))
        self.flush()

    def follow(self, leader: int = 2, epoch: int = 1) -> None:
        """It is said to it that this leader has begun its epoch; it asks the leader, and that says so too."""
        self.ask(BeginQuorumEpochRequest(key(self.raft.me.id), epoch, leader, {"CONTROLLER": address(leader)}))
        if (self.raft.epoch, self.raft.leader_id) != (epoch, leader):
            self.confirm(leader, RaftFetchResponse(NONE, epoch, leader, leader_address=address(leader)))
        assert self.raft.role == "Follower"

    def confirm(self, leader: int, response: RaftFetchResponse) -> list[do.Effect]:
        """The answer of a voter that was said to lead, and was asked."""
        asked = [s for s in self.under_way if s.to.id == leader and isinstance(s.request, RaftFetchRequest)]
        assert asked[-1].to.address == address(leader)
        return self.reply(asked[-1].request, response)

    def answer_fetch(self, **fields: object) -> list[do.Effect]:
        request = self.fetch()
        response = RaftFetchResponse(NONE, self.raft.epoch, self.raft.leader_id)
        return self.reply(request, response._replace(**fields))  # type: ignore[arg-type]

    def fetched_by(
        self, node_id: int, offset: int | None = None, *, wait_s: float = 0.0, **fields: object
    ) -> Response | None:
        """A replica fetches from this leader, by default what is behind all the rest."""
        request = RaftFetchRequest(
            key(node_id),
            self.raft.epoch,
            self.log.end_offset if offset is None else offset,
            self.log.last_epoch,
            wait_s,
            2**63 - 1,
        )
        return self.ask(request._replace(**fields))  # type: ignore[arg-type]

    @property
    def has_deadline(self) -> bool:
        return self.raft.deadline < inf
