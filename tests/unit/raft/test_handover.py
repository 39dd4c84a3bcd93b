"""How a leadership begins and ends for the others (D15)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    Address,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    ReplicaKey,
    VoteRequest,
    VoteResponse,
)
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key


def begin(epoch: int, leader: int) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(key(1), epoch, leader, {"CONTROLLER": address(leader)})


def end(epoch: int, leader: int, *preferred: int) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(epoch, leader, tuple(key(n) for n in preferred), {"CONTROLLER": address(leader)})


def following(leader: int = 2) -> Bench:
    bench = Bench()
    bench.follow(leader)
    bench.answer_fetch()
    return bench


def test_d15_a_leader_that_is_stopped_names_its_successors_by_their_logs() -> None:
    bench = Bench(kraft_version=1)
    bench.become_leader()
    bench.write(3)
    bench.fetched_by(2, 3)
    bench.fetched_by(3, 6)
    bench.step(on.Resign())
    assert bench.raft.role == "Resigned"
    told = bench.sent(EndQuorumEpochRequest)
    assert [send.to.id for send in bench.of(do.Send)] == [2, 3]
    assert {request.preferred_candidates for request in told} == {(key(3), key(2))}
    assert not bench.raft.has_handed_over
    for request in told:
        bench.reply(request, QuorumEpochResponse(NONE, 1, -1))
    assert bench.raft.has_handed_over


def test_d15_it_tells_again_who_has_not_heard() -> None:
    bench = Bench()
    bench.become_leader()
    bench.step(on.Resign())
    bench.lose(bench.sent(EndQuorumEpochRequest)[0])
    bench.wait(0.02)
    assert len(bench.sent(EndQuorumEpochRequest)) == 2


def test_a_leader_that_is_stopped_stays_resigned_and_may_vote_for_its_successor() -> None:
    bench = Bench()
    bench.become_leader()
    bench.step(on.Resign())
    bench.wait(10)
    assert (bench.raft.role, bench.raft.epoch) == ("Resigned", 1)
    response = bench.ask(VoteRequest(key(1), 2, key(3), 1, 1, pre_vote=False))
    assert isinstance(response, VoteResponse)
    assert response.granted


def test_who_led_before_a_restart_is_resigned_and_begins_the_next_epoch_in_time() -> None:
    bench = Bench(state=ElectionState(4, 1, key(1)))
    assert (bench.raft.role, bench.raft.leader_id) == ("Resigned", -1)
    assert len(bench.sent(EndQuorumEpochRequest)) == 2
    waited = bench.wait_for("Unattached")
    assert 1.0 <= waited <= 2.0
    assert bench.saved == ElectionState(5)


def test_d15_the_first_in_the_list_asks_at_once_the_next_a_little_later() -> None:
    first = following()
    first.ask(end(1, 2, 1, 3))
    assert first.raft.role == "Prospective"
    second = following()
    second.ask(end(1, 2, 3, 1))
    assert second.wait_for("Prospective") == pytest.approx(0.1)
    absent = following()
    absent.ask(end(1, 2, 3, 4))
    assert absent.wait_for("Prospective") == pytest.approx(0.2)
    unnamed = following()
    unnamed.ask(end(1, 2))
    assert unnamed.wait_for("Prospective") <= 0.1


def test_d15_an_answer_that_was_under_way_does_not_bring_the_resigned_leader_back() -> None:
    bench = following()
    bench.ask(end(1, 2, 3, 1))
    bench.answer_fetch()
    assert bench.wait_for("Prospective") == pytest.approx(0.1)


def test_d15_the_others_grant_it_their_pre_vote_though_they_had_fetched() -> None:
    bench = following()
    bench.ask(end(1, 2, 3, 1))
    response = bench.ask(VoteRequest(key(1), 1, key(3), 0, 0, pre_vote=True))
    assert isinstance(response, VoteResponse)
    assert response.granted


def test_a_directory_that_is_not_ones_own_is_somebody_else() -> None:
    bench = following()
    bench.ask(end(1, 2)._replace(preferred_candidates=(ReplicaKey(1, key(9).directory_id), key(1))))
    assert bench.wait_for("Prospective") == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (begin(4, 2), ErrorCode.FENCED_LEADER_EPOCH),
        (end(4, 2), ErrorCode.FENCED_LEADER_EPOCH),
        (begin(5, 3), ErrorCode.INVALID_REQUEST),
        (end(5, 3), ErrorCode.INVALID_REQUEST),
        (begin(6, 1), ErrorCode.INVALID_REQUEST),
        (begin(6, -1), ErrorCode.INVALID_REQUEST),
        (begin(2**31 - 1, 3), ErrorCode.INVALID_REQUEST),
        (end(2**31 - 1, 3), ErrorCode.INVALID_REQUEST),
        (begin(5, 2)._replace(voter=key(3)), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_what_cannot_be_is_refused(request_: BeginQuorumEpochRequest | EndQuorumEpochRequest, error: ErrorCode) -> None:
    bench = Bench()
    bench.follow(2, epoch=5)
    assert bench.ask(request_) == QuorumEpochResponse(error, 5, 2, address(2))


def test_a_leader_that_begins_is_saved_before_it_is_acknowledged() -> None:
    bench = Bench()
    bench.ask(begin(3, 2))
    kinds = bench.kinds()
    assert kinds.index(do.Save) < kinds.index(do.Answer)
    assert bench.saved == ElectionState(3, 2)
    assert bench.of(do.LeaderChanged) == [do.LeaderChanged(3, 2)]


def test_the_vote_of_the_epoch_is_kept_when_its_leader_is_known() -> None:
    bench = Bench(state=ElectionState(3, -1, key(3)))
    bench.ask(begin(3, 2))
    assert bench.saved == ElectionState(3, 2, key(3))


def test_a_prospective_that_hears_its_leader_follows_it_again() -> None:
    bench = following()
    bench.lose_leader()
    bench.wait_for("Prospective")
    bench.ask(begin(1, 2))
    assert bench.raft.role == "Follower"


def test_a_leader_of_an_unknown_address_is_looked_for() -> None:
    bench = Bench()
    bench.ask(BeginQuorumEpochRequest(key(1), 3, 77, {}))
    assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id) == ("Unattached", 3, -1)


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_leader_itself_knows_best_where_it_listens(is_lost: bool) -> None:
    bench = Bench()
    bench.ask(begin(1, 2))
    if is_lost:
        bench.lose_leader()
        bench.wait_for("Prospective")
    moved = Address("elsewhere", 9)
    bench.ask(BeginQuorumEpochRequest(key(1), 1, 2, {"CONTROLLER": moved}))
    assert (bench.raft.role, bench.raft.leader_address()) == ("Follower", moved)
    if not is_lost:
        bench.lose_leader()
    assert moved in [send.to.address for send in bench.under_way]
