"""Raft checks itself: each state that it must never be in is found. That it is in none, all other tests ask after each step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.raft.core import Core
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import NO_NODE, OffsetAndEpoch, RemoveVoterRequest
from strandline.raft.replicas import ReplicaState
from strandline.raft.states import (
    Candidate,
    FetchingSnapshot,
    Follower,
    Leader,
    Parked,
    Prospective,
    Resigned,
    State,
    Unattached,
    VoterChange,
)
from tests.unit.raft.bench import Bench
from tests.unit.raft.cluster import address, key, voter

EPOCH = 5


def begun(state: State, leader_id: int = NO_NODE, *, voted: int | None = None) -> Core:
    """Node 1 of three, in this state."""
    bench = Bench(kraft_version=1)
    core = bench.raft._core
    election = ElectionState(EPOCH, leader_id, None if voted is None else key(voted))
    core.begin(state, election, address(leader_id) if leader_id > 1 else None)
    return core


@pytest.mark.parametrize(
    ("state", "leader_id", "voted"),
    [
        (Unattached(1.0), NO_NODE, 2),
        (Prospective(1.0, {1}, {2}), 3, None),
        (Candidate(1.0, {1, 2}, {3}), NO_NODE, 1),
        (Follower(1.0), 2, None),
        (Resigned(1.0, (), {2}), 1, 1),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__slots__") else str(value),
)
def test_a_state_that_fits_its_election(state: State, leader_id: int, voted: int | None) -> None:
    begun(state, leader_id, voted=voted).check_invariants()


@pytest.mark.parametrize(
    ("state", "leader_id", "voted"),
    [
        (Unattached(1.0), 2, None),
        (Prospective(1.0, {2}), NO_NODE, None),
        (Prospective(1.0, {1, 2}, {2}), NO_NODE, None),
        (Candidate(1.0, {1}), 2, 1),
        (Candidate(1.0, {1}), NO_NODE, 2),
        (Candidate(1.0, {2}), NO_NODE, 1),
        (Candidate(1.0, {1, 3}, {3}), NO_NODE, 1),
        (Follower(1.0), NO_NODE, None),
        (Follower(1.0), 1, None),
        (Leader(0, 1.0), 2, 1),
        (Resigned(1.0, (), {2}), NO_NODE, 1),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__slots__") else str(value),
)
def test_a_state_that_does_not(state: State, leader_id: int, voted: int | None) -> None:
    with pytest.raises(AssertionError, match=f"{type(state).__name__} in epoch {EPOCH}"):
        begun(state, leader_id, voted=voted).check_invariants()


def test_what_was_said_of_the_leader_is_what_is() -> None:
    core = begun(Follower(1.0), 2)
    core.announced = (EPOCH, 3)
    with pytest.raises(AssertionError, match="but said"):
        core.check_invariants()


def test_while_a_snapshot_is_put_in_place_it_does_not_campaign() -> None:
    core = begun(Candidate(1.0, {1}), voted=1)
    core.installing = OffsetAndEpoch(7, 1)
    with pytest.raises(AssertionError, match="put in place"):
        core.check_invariants()


def voters_of_another(core: Core, leader: Leader) -> None:
    del leader.voters[3]


def voter_that_observes(core: Core, leader: Leader) -> None:
    leader.observers[key(2)] = ReplicaState(key(2))


def voter_ahead(core: Core, leader: Leader) -> None:
    leader.voters[2].end_offset = core.log.end_offset + 1


def high_watermark_above_end(core: Core, leader: Leader) -> None:
    leader.high_watermark = core.committed = core.log.end_offset + 1


def high_watermark_before_own_epoch(core: Core, leader: Leader) -> None:
    leader.high_watermark = core.committed = leader.epoch_start_offset


def high_watermark_not_committed(core: Core, leader: Leader) -> None:
    core.committed = 1


def fetch_left_waiting(core: Core, leader: Leader) -> None:
    leader.parked.append(Parked(core.fetch_request(1.0)._replace(high_watermark=1), lambda response: None, 1.0))


def fetch_of_older_epoch(core: Core, leader: Leader) -> None:
    leader.parked.append(Parked(core.fetch_request(1.0)._replace(epoch=0), lambda response: None, 1.0))


def change_of(offset: int | None) -> VoterChange:
    return VoterChange(RemoveVoterRequest(key(3)), None, 1.0, offset=offset)


def change_without_high_watermark(core: Core, leader: Leader) -> None:
    leader.change, leader.high_watermark = change_of(None), None


def change_of_other_voters(core: Core, leader: Leader) -> None:
    leader.change = change_of(core.history.voters_offset + 1)


def change_that_is_committed(core: Core, leader: Leader) -> None:
    leader.change = change_of(core.history.voters_offset)


def two_voters_at_once(core: Core, leader: Leader) -> None:
    core.history.add_voters(10, type(core.voters)([*core.voters, voter(4), voter(5)]))


def no_voters(core: Core, leader: Leader) -> None:
    for left in ((1, 2), (1,), ()):
        core.history.add_voters(20 - len(left), type(core.voters)(voter(node_id) for node_id in left))


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (voters_of_another, "tracked are"),
        (voter_that_observes, "a voter and an observer"),
        (voter_ahead, "its leader"),
        (high_watermark_above_end, "in a log to"),
        (high_watermark_before_own_epoch, "an epoch that began"),
        (high_watermark_not_committed, "is committed"),
        (fetch_left_waiting, "waits with high watermark"),
        (fetch_of_older_epoch, "waits in"),
        (change_without_high_watermark, "before anything is committed"),
        (change_of_other_voters, "the voters are those of"),
        (change_that_is_committed, "still under way"),
        (two_voters_at_once, "not one at a time"),
        (no_voters, "no voters left"),
    ],
)
def test_a_leader_that_is_not_as_it_should_be(broken: Callable[[Core, Leader], None], problem: str) -> None:
    bench = Bench(kraft_version=1)
    bench.become_leader()
    bench.fetched_by(2)
    leader = bench.raft.state
    assert isinstance(leader, Leader)
    bench.raft.check_invariants()
    broken(bench.raft._core, leader)
    with pytest.raises(AssertionError, match=problem):
        bench.raft.check_invariants()


def committed_above_end(core: Core, follower: Follower) -> None:
    core.committed = 1


def fetches_while_it_installs(core: Core, follower: Follower) -> None:
    follower.snapshot, core.installing = FetchingSnapshot(OffsetAndEpoch(7, 1)), OffsetAndEpoch(7, 1)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [(committed_above_end, "the log ends at 0"), (fetches_while_it_installs, "while .* is put in place")],
)
def test_a_follower_that_is_not(broken: Callable[[Core, Follower], None], problem: str) -> None:
    bench = Bench(state=ElectionState(EPOCH, 2))
    follower = bench.raft.state
    assert isinstance(follower, Follower)
    bench.raft.check_invariants()
    broken(bench.raft._core, follower)
    with pytest.raises(AssertionError, match=problem):
        bench.raft.check_invariants()


def test_before_its_first_event_there_is_nothing_to_check() -> None:
    Bench(state=ElectionState(EPOCH, 2), start=False).raft.check_invariants()
