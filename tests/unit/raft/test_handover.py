"""How a leadership begins and ends for the others (D15)."""

# mypy: disable-error-code="operator"

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
    RaftFetchRequest,
    RaftFetchResponse,
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
    assert [send.to.id for send in bench.of(do.SendRequest)] == [2, 3]
    assert {request.preferred_candidates for request in told} == {(key(3), key(2))}
    assert not bench.raft.has_handed_over
    for request in told:
        bench.reply(request, QuorumEpochResponse(NONE, 1, -1))
    for node_id in (2, 3):
        assert not bench.raft.has_handed_over, "they believe a refused Fetch, which is still to come"
        bench.fetched_by(node_id)
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


def refuse(bench: Bench) -> None:
    """The leader's own answer to a Fetch: it leads no more."""
    bench.answer_fetch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=-1)


@pytest.mark.parametrize("refused_first", [False, True])
def test_d15_the_first_in_the_list_asks_at_once_the_next_a_little_later(refused_first: bool) -> None:
    def told(*preferred: int) -> Bench:
        bench = following()
        if refused_first:
            refuse(bench)
        bench.ask(end(1, 2, *preferred))
        if not refused_first:
            refuse(bench)
        return bench

    assert told(1, 3).raft.role == "Prospective"
    assert told(3, 1).wait_for("Prospective") <= 0.1
    assert told(3, 4).wait_for("Prospective") <= 0.2
    assert told().wait_for("Prospective") <= 0.1


def test_d15_an_answer_that_was_under_way_does_not_bring_the_resigned_leader_back() -> None:
    bench = following()
    fetch = bench.fetch()
    bench.ask(end(1, 2, 3, 1))
    bench.reply(fetch, RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, -1))
    bench.reply(bench.sign_of_life(), RaftFetchResponse(NONE, 1, 2))
    assert bench.wait_for("Prospective") <= 0.1


@pytest.mark.parametrize("is_stopped", [False, True])
def test_sec_z16_who_says_in_the_leaders_name_that_it_resigned_is_not_believed_while_it_answers(
    is_stopped: bool,
) -> None:
    bench = following()
    for preferred in ((1, 3), (), (3,) * 10_000):
        response = bench.ask(end(1, 2, *preferred))
        assert response == QuorumEpochResponse(NONE, 1, 2, address(2))
        bench.answer_fetch()
        bench.wait(0.5)
        assert (bench.raft.role, bench.raft.leader_id, bench.saved.epoch) == ("Follower", 2, 1)
    vote = bench.ask(VoteRequest(key(1), 1, key(3), 0, 0, pre_vote=True))
    assert isinstance(vote, VoteResponse)
    assert not vote.granted
    if is_stopped:
        refuse(bench)
        assert bench.wait_for("Prospective") <= 0.3, "a list of ten thousand names does not keep it waiting"


def test_d15_the_others_grant_it_their_pre_vote_though_they_had_fetched() -> None:
    bench = following()
    bench.ask(end(1, 2, 3, 1))
    refuse(bench)
    response = bench.ask(VoteRequest(key(1), 1, key(3), 0, 0, pre_vote=True))
    assert isinstance(response, VoteResponse)
    assert response.granted


def test_a_directory_that_is_not_ones_own_is_somebody_else() -> None:
    bench = following()
    bench.ask(end(1, 2)._replace(preferred_candidates=(ReplicaKey(1, key(9).directory_id), key(1))))
    refuse(bench)
    assert 0 < bench.wait_for("Prospective") <= 0.1


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


def test_whoever_voted_for_a_leader_believes_that_it_has_begun_and_saves_that_first() -> None:
    bench = Bench(state=ElectionState(3, -1, key(2)))
    bench.ask(begin(3, 2))
    kinds = bench.kinds()
    assert kinds.index(do.Save) < kinds.index(do.SendResponse)
    assert bench.saved == ElectionState(3, 2, key(2))
    assert bench.of(do.LeaderChanged) == [do.LeaderChanged(3, 2)]


def test_the_vote_of_the_epoch_is_kept_when_its_leader_is_known() -> None:
    bench = Bench(state=ElectionState(3, -1, key(3)))
    bench.follow(2, epoch=3)
    assert bench.saved == ElectionState(3, 2, key(3))


STATES = {
    "Unattached": Bench,
    "Follower": following,
    "Leader": lambda: _leading(),
    "Prospective": lambda: _deserted(),
}


def _leading() -> Bench:
    bench = Bench()
    bench.become_leader()
    return bench


def _deserted() -> Bench:
    bench = following()
    bench.lose_leader()
    bench.wait_for("Prospective")
    return bench


@pytest.mark.parametrize("role", STATES)
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_sec_z16_who_says_that_a_voter_leads_only_has_that_voter_asked(role: str, kraft_version: int) -> None:
    """Where the voters' record says it is, whatever the request says."""
    bench = STATES[role]()
    bench.raft._core.history.add_kraft_version(7, kraft_version)
    before = bench.raft.role, bench.raft.epoch, bench.raft.leader_id, bench.saved
    bench.under_way.clear()
    lie = BeginQuorumEpochRequest(key(1), bench.raft.epoch + 1, 3, {"CONTROLLER": Address("elsewhere", 9)})
    response = bench.ask(lie)
    assert isinstance(response, QuorumEpochResponse)
    assert response.error is ErrorCode.BROKER_NOT_AVAILABLE
    assert [
        (send.to.id, send.to.address) for send in bench.under_way if isinstance(send.request, RaftFetchRequest)
    ] == [(3, address(3))]
    bench.confirm(3, RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, bench.raft.epoch, -1))
    assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id, bench.saved) == before


def test_a_leader_that_the_voter_itself_confirms_is_followed_at_once() -> None:
    bench = following()
    bench.follow(3, epoch=4)
    assert bench.saved == ElectionState(4, 3)
    assert bench.fetch()


def test_a_prospective_follows_its_leader_again_when_that_answers() -> None:
    bench = _deserted()
    bench.ask(begin(1, 2))
    assert bench.raft.role == "Prospective", "anybody can say that"
    bench.confirm(2, RaftFetchResponse(NONE, 1, 2))
    assert bench.raft.role == "Follower"


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_sec_z16_a_leader_is_a_voter(kraft_version: int) -> None:
    bench = Bench(kraft_version=kraft_version)
    bench.under_way.clear()
    for epoch in (bench.raft.epoch, 3):
        for lie in (
            BeginQuorumEpochRequest(key(1), epoch, 77, {"CONTROLLER": Address("elsewhere", 9)}),
            EndQuorumEpochRequest(epoch, 77, (), {"CONTROLLER": Address("elsewhere", 9)}),
        ):
            response = bench.ask(lie)
            assert isinstance(response, QuorumEpochResponse)
            assert (response.error is ErrorCode.INCONSISTENT_VOTER_SET) == (kraft_version == 0)
            assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id) == ("Unattached", 0, -1)
    bench.wait(0.5)
    assert Address("elsewhere", 9) not in [send.to.address for send in bench.under_way]


def test_sec_z16_configured_voters_are_where_the_configuration_says() -> None:
    bench = following()
    bench.ask(BeginQuorumEpochRequest(key(1), 1, 2, {"CONTROLLER": Address("elsewhere", 9)}))
    bench.lose_leader()
    bench.wait(0.5)
    assert {send.to.address for send in bench.under_way} <= {address(2), address(3)}


@pytest.mark.parametrize("directory_is_said", [True, False])
def test_a_voter_that_is_behind_follows_the_unknown_candidate_it_voted_for(directory_is_said: bool) -> None:
    """Voters 2 and 3 were replaced by 4 and 5 while it was down, and 5 is gone: only its Fetches keep 4 in office."""
    bench = Bench(kraft_version=1)
    candidate = key(4) if directory_is_said else ReplicaKey(4)
    vote = bench.ask(VoteRequest(key(1), 7, candidate, 5, 50, pre_vote=False))
    assert isinstance(vote, VoteResponse)
    assert vote.granted
    assert bench.ask(begin(7, 4)) == QuorumEpochResponse(NONE, 7, 4, address(4))
    assert (bench.raft.role, bench.saved) == ("Follower", ElectionState(7, 4, candidate))
    assert bench.under_way[-1].to == on.Destination(4, address(4))


def test_a_voter_that_is_behind_follows_that_candidate_again_after_a_restart() -> None:
    bench = Bench(kraft_version=1, state=ElectionState(7, 4, key(4)))
    assert bench.raft.role == "Unattached", "where it is is not saved"
    bench.ask(begin(7, 4))
    assert (bench.raft.role, bench.under_way[-1].to) == ("Follower", on.Destination(4, address(4)))


def test_sec_z16_what_was_said_in_the_leaders_name_is_forgotten_once_a_later_fetch_is_answered() -> None:
    bench = following()
    bench.ask(end(1, 2, 1, 3))
    bench.answer_fetch()  # it was sent before
    bench.wait(0.4)
    bench.answer_fetch()
    bench.lose_leader()  # one connection closes
    assert bench.raft.role == "Follower"
    bench.reply(bench.sign_of_life(), RaftFetchResponse(NONE, 1, 2))
    bench.wait(1.0)
    assert bench.raft.role == "Follower"


def test_d15_the_answer_to_an_earlier_fetch_does_not_contradict_a_leader_that_resigns() -> None:
    bench = following()
    bench.ask(end(1, 2, 1, 3))
    bench.answer_fetch()
    refuse(bench)
    assert bench.raft.role == "Prospective", "it is the first in the list"


def test_sec_z16_what_was_said_is_forgotten_however_often_it_is_said() -> None:
    bench = following()
    for _ in range(4):
        bench.ask(end(1, 2, 1, 3))
        bench.answer_fetch()
        bench.wait(0.2)
    bench.lose_leader()
    assert bench.raft.role == "Follower"


@pytest.mark.parametrize("is_on_device", [True, False])
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_leader_of_a_newer_epoch_hears_in_its_own_epoch_that_it_has_to_wait(
    kraft_version: int, is_on_device: bool
) -> None:
    """Kafka asks again at once if it hears of an older epoch, or UNKNOWN_LEADER_EPOCH."""
    bench = Bench(kraft_version=kraft_version)
    bench.follow()
    bench.answer_fetch()
    if not is_on_device:
        bench.log.append(1, [(b"", b"value")])
    assert bench.ask(begin(3, 3)) == QuorumEpochResponse(ErrorCode.BROKER_NOT_AVAILABLE, 3, -1)
    assert bench.ask(end(3, 3)) == QuorumEpochResponse(NONE, 3, -1)
    assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id) == ("Follower", 1, 2)


def test_a_leader_pauses_before_it_tells_again_who_has_to_ask_first() -> None:
    bench = Bench()
    bench.become_leader()
    begun = {request.voter.id: request for request in bench.sent(BeginQuorumEpochRequest)}
    bench.reply(begun[2], QuorumEpochResponse(ErrorCode.BROKER_NOT_AVAILABLE, 1, -1))
    assert 2 not in {request.voter.id for request in bench.sent(BeginQuorumEpochRequest)}
    bench.wait(0.02)
    assert 2 in {request.voter.id for request in bench.sent(BeginQuorumEpochRequest)}
