"""The six states of a replica of the metadata log, and the ways between them.

    Unattached   knows an epoch, but no leader of it. May vote. Looks for the leader; a voter asks for a pre-vote in time.
    Prospective  would like to be a candidate, and asks whether it could win (pre-vote). The epoch stays, the leader is
                 kept in mind: another voter may still hear it.
    Candidate    has begun an epoch, voted for itself in it, and asks for votes.
    Follower     knows the leader of its epoch, and fetches from it.
    Leader       was elected by a majority; appends, and knows how far the others are.
    Resigned     has led this epoch and will not again: it was stopped, restarted, removed, or lost its majority.

An epoch has at most one leader, because a voter votes once in it and remembers (D1, D2). The log of a leader has everything
committed, because a majority found it at least as new as their own. What a leader of an older epoch still says is refused by
every node that knows a newer one. Two rules keep the epoch from running away: no node becomes a candidate without a majority of
pre-votes (KIP-996), and no node that hears its leader grants one.

Kafka's rules are kept but for these: a Fetch that fails starts the wait for an election, not the fetch timeout alone
(docs/decisions/0005); of two that ask each other for pre-votes at once, one gives way; a voter that grants a vote stops asking for
itself.

Always true: who is in which state is known in one place, and every change of state is one of TRANSITIONS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from strandline.raft.messages import OffsetAndEpoch, RaftFetchRequest, ReplicaKey, Request, Response
from strandline.raft.replicas import ReplicaState
from strandline.raft.voters import VoterNode

AnswerTo = Callable[[Response], None]


@dataclass(slots=True)
class Unattached:
    campaign_at: float
    """When a voter asks for a pre-vote."""


@dataclass(slots=True)
class Prospective:
    ends_at: float
    granted: set[int]
    rejected: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Candidate:
    ends_at: float
    granted: set[int]
    rejected: set[int] = field(default_factory=set)


class FetchingSnapshot(NamedTuple):
    snapshot_id: OffsetAndEpoch
    position: int = 0
    """So much of it is here."""


@dataclass(slots=True)
class Follower:
    fetch_deadline: float
    """Until then the leader has to answer a Fetch."""
    campaign_at: float = inf
    """Sooner than that, a voter asks for a pre-vote: the leader is believed to be gone."""
    has_fetched: bool = False
    """The leader has answered in this epoch: it is alive, so no other one need be elected (D4)."""
    successors: tuple[ReplicaKey, ...] | None = None
    """A request said in the leader's name that it leads no more, and who should succeed it. Any client can send that: it counts
    once the leader has refused a Fetch, or does not answer one, and no more once it has answered one sent later (SEC-Z16)."""
    has_asked_since: bool = False
    """Since that was said, a Fetch was sent."""
    has_resigned: bool = False
    """The leader leads no more; a later answer of its does not change that."""
    expected_end_offset: int = 0
    """What is to be appended ends here; only when it is on the device comes the next Fetch (D8)."""
    snapshot: FetchingSnapshot | None = None
    update_voter_at: float = 0.0


class Parked(NamedTuple):
    """A Fetch for which there is nothing new yet."""

    request: RaftFetchRequest
    answer: AnswerTo
    deadline: float


@dataclass(slots=True)
class VoterChange:
    """The one change of voters that is under way (D13)."""

    request: Request
    answer: AnswerTo | None
    """None once it is answered."""
    deadline: float
    voter: VoterNode | None = None
    """To be added or updated, once it has said which versions it knows; None for a removal."""
    offset: int | None = None
    """Of the VotersRecord, once it is in the log."""


@dataclass(slots=True)
class Leader:
    epoch_start_offset: int
    check_quorum_at: float
    high_watermark: int | None = None
    """None until a record of this epoch is committed (D7)."""
    voters: dict[int, ReplicaState] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaState] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)
    """The voters that fetched since the last time that a majority had."""
    parked: list[Parked] = field(default_factory=list)
    change: VoterChange | None = None


@dataclass(slots=True)
class Resigned:
    ends_at: float
    successors: tuple[ReplicaKey, ...]
    """By how far their logs reach, the farthest first."""
    unacknowledged: set[int]
    """The voters that have not heard of it yet."""
    not_yet_refused: set[int] = field(default_factory=set)
    """The voters of which no Fetch was refused since: they have no proof of it yet."""


State = Unattached | Prospective | Candidate | Follower | Leader | Resigned

TRANSITIONS: Final[dict[type[State], dict[type[State], str]]] = {
    Unattached: {
        Unattached: "a newer epoch; or it voted",
        Prospective: "the election timeout is over",
        Follower: "it learnt of the leader",
        Resigned: "it learns that it led a newer epoch, which it does not remember",
    },
    Prospective: {
        Candidate: "a majority would vote for it, or does not know the pre-vote",
        Follower: "a leader is alive; or it lost and knows of one",
        Unattached: "it lost and knows of no leader; it voted; or a newer epoch",
        Resigned: "it learns that it led a newer epoch, which it does not remember",
    },
    Candidate: {
        Leader: "a majority voted for it",
        Prospective: "it lost, and its wait is over",
        Follower: "another node leads this epoch or a newer one",
        Unattached: "a newer epoch",
        Resigned: "it learns that it led a newer epoch, which it does not remember",
    },
    Follower: {
        Prospective: "the leader is silent, gone, or hands over",
        Follower: "a newer epoch with a leader",
        Unattached: "a newer epoch without a known leader",
        Resigned: "it learns that it led a newer epoch, which it does not remember",
    },
    Leader: {
        Resigned: "it is stopped, removed, or a majority does not fetch any more",
        Follower: "a newer epoch with a leader",
        Unattached: "a newer epoch without a known leader",
    },
    Resigned: {
        Unattached: "a newer epoch, or its own next one when the others had their time",
        Follower: "a newer epoch with a leader",
        Prospective: "it is the only voter",
        Resigned: "it learns that it led a newer epoch, which it does not remember",
    },
}
