"""Changing the voters: one at a time, committed by those who come after it (D13, KIP-853)."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    RemoveVoterRequest,
    ReplicaKey,
    Request,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key

ADD_4 = AddVoterRequest(key(4), {"CONTROLLER": address(4)}, 5.0)
REMOVE_3 = RemoveVoterRequest(key(3))
MOVE_2 = UpdateVoterRequest(1, key(2), {"CONTROLLER": address(22)}, range(2))


@pytest.fixture
def leader() -> Bench:
    """Of voters 1, 2, 3 at kraft.version 1; its first records are committed by node 2."""
    bench = Bench(kraft_version=1)
    bench.become_leader()
    bench.fetched_by(2)
    assert bench.raft.high_watermark == 3
    return bench


def error_of(bench: Bench, request: Request) -> ErrorCode:
    response = bench.ask(request)
    assert isinstance(response, VoterChangeResponse | QuorumEpochResponse)
    return response.error


def append_and_flush(bench: Bench) -> None:
    bench.step(on.LeaderAppended(bench.log.end_offset))
    bench.flush()


def add_4(bench: Bench) -> None:
    """Up to its record in the log."""
    bench.fetched_by(4)
    assert bench.ask(ADD_4) is None
    (versions,) = bench.sent(ApiVersionsRequest)
    bench.reply(versions, ApiVersionsResponse(NONE, range(2)))


def test_d13_a_voter_is_added_by_the_majority_that_it_is_part_of(leader: Bench) -> None:
    add_4(leader)
    adding = leader.answer
    assert leader.raft.voters.ids == [1, 2, 3, 4], "in force before it is committed"
    append_and_flush(leader)
    leader.fetched_by(2)
    assert leader.raft.high_watermark == 3, "two of four are no majority"
    leader.fetched_by(4)
    assert leader.raft.high_watermark == 4
    assert do.SendResponse(adding, VoterChangeResponse(NONE)) in leader.effects


def test_d13_whoever_does_not_want_to_wait_for_the_commit_is_answered_at_the_append(leader: Bench) -> None:
    leader.fetched_by(4)
    assert leader.ask(ADD_4._replace(ack_when_committed=False)) is None
    leader.reply(leader.sent(ApiVersionsRequest)[0], ApiVersionsResponse(NONE, range(2)))
    assert leader.answered() == VoterChangeResponse(NONE)
    assert error_of(leader, REMOVE_3) is ErrorCode.REQUEST_TIMED_OUT


def test_d13_one_change_at_a_time(leader: Bench) -> None:
    add_4(leader)
    for request in (AddVoterRequest(key(5), {"CONTROLLER": address(5)}, 5.0), REMOVE_3, MOVE_2):
        assert error_of(leader, request) is ErrorCode.REQUEST_TIMED_OUT


def test_d13_no_change_on_top_of_one_that_is_not_committed(leader: Bench) -> None:
    add_4(leader)
    adding = leader.answer
    leader.wait(2.5)
    leader.fetched_by(2, 3)
    leader.fetched_by(3, 3)
    leader.wait(2.6)
    assert leader.raft.is_leader
    (given_up,) = [e.response for e in leader.effects if isinstance(e, do.SendResponse) and e.answer is adding]
    assert given_up.error is ErrorCode.REQUEST_TIMED_OUT
    assert leader.raft.voters.ids == [1, 2, 3, 4]
    assert error_of(leader, REMOVE_3) is ErrorCode.REQUEST_TIMED_OUT


def test_d13_not_before_the_high_watermark_is_known() -> None:
    bench = Bench(kraft_version=1)
    bench.become_leader()
    assert error_of(bench, REMOVE_3) is ErrorCode.REQUEST_TIMED_OUT


def test_d13_not_at_kraft_version_0() -> None:
    bench = Bench()
    bench.become_leader()
    bench.fetched_by(2)
    for request in (ADD_4, REMOVE_3, MOVE_2):
        assert error_of(bench, request) is ErrorCode.UNSUPPORTED_VERSION


def test_d13_not_by_a_follower() -> None:
    bench = Bench(kraft_version=1)
    bench.follow(2)
    for request in (ADD_4, REMOVE_3, MOVE_2):
        assert error_of(bench, request) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ADD_4._replace(voter=key(2)), ErrorCode.DUPLICATE_VOTER),
        (ADD_4._replace(voter=ReplicaKey(2, key(9).directory_id)), ErrorCode.DUPLICATE_VOTER),
        (ADD_4._replace(voter=ReplicaKey(4)), ErrorCode.INVALID_REQUEST),
        (ADD_4._replace(voter=ReplicaKey(-1, key(4).directory_id)), ErrorCode.INVALID_REQUEST),
        (ADD_4._replace(endpoints={}), ErrorCode.INVALID_REQUEST),
        (RemoveVoterRequest(key(4)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoterRequest(ReplicaKey(3, key(9).directory_id)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoterRequest(ReplicaKey(3)), ErrorCode.INVALID_REQUEST),
        (MOVE_2._replace(voter=ReplicaKey(2)), ErrorCode.INVALID_REQUEST),
        (MOVE_2._replace(endpoints={}), ErrorCode.INVALID_REQUEST),
        (MOVE_2._replace(kraft_versions=range(0)), ErrorCode.INVALID_REQUEST),
        (MOVE_2._replace(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (MOVE_2._replace(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_what_cannot_be_is_refused(leader: Bench, request_: Request, error: ErrorCode) -> None:
    assert error_of(leader, request_) is error
    assert leader.raft.voters.ids == [1, 2, 3]


def test_the_last_voter_stays() -> None:
    bench = Bench([1], kraft_version=1)
    append_and_flush(bench)
    assert error_of(bench, RemoveVoterRequest(key(1))) is ErrorCode.VOTER_NOT_FOUND


def _answer_of_4(leader: Bench, response: ApiVersionsResponse | None) -> ErrorCode:
    assert leader.ask(ADD_4) is None
    (versions,) = leader.sent(ApiVersionsRequest)
    if response is None:
        leader.lose(versions)
    else:
        leader.reply(versions, response)
    answered = leader.answered()
    assert isinstance(answered, VoterChangeResponse)
    return answered.error


def test_d13_a_new_voter_has_to_be_caught_up(leader: Bench) -> None:
    fit = ApiVersionsResponse(NONE, range(2))
    assert _answer_of_4(leader, fit) is ErrorCode.REQUEST_TIMED_OUT, "never fetched"
    leader.fetched_by(4, 1)
    assert _answer_of_4(leader, fit) is ErrorCode.REQUEST_TIMED_OUT, "not at the end of the log"
    leader.fetched_by(4)
    leader.wait(2.9)
    leader.fetched_by(2)
    leader.wait(0.2)
    assert _answer_of_4(leader, fit) is ErrorCode.REQUEST_TIMED_OUT, "not for a while"


def test_a_new_voter_has_to_answer_and_to_know_the_version(leader: Bench) -> None:
    leader.fetched_by(4)
    assert _answer_of_4(leader, None) is ErrorCode.REQUEST_TIMED_OUT
    assert _answer_of_4(leader, ApiVersionsResponse(ErrorCode.UNKNOWN_SERVER_ERROR)) is ErrorCode.REQUEST_TIMED_OUT
    assert _answer_of_4(leader, ApiVersionsResponse(NONE, range(1))) is ErrorCode.INVALID_REQUEST
    assert leader.raft.voters.ids == [1, 2, 3]


def test_d13_a_voter_is_removed_by_those_who_stay(leader: Bench) -> None:
    assert leader.ask(REMOVE_3) is None
    removing = leader.answer
    assert leader.raft.voters.ids == [1, 2]
    append_and_flush(leader)
    leader.fetched_by(3)
    assert leader.raft.high_watermark == 3, "it is no voter any more"
    leader.fetched_by(2)
    assert leader.raft.high_watermark == 4
    assert do.SendResponse(removing, VoterChangeResponse(NONE)) in leader.effects
    assert [r.key.id for r in leader.raft.describe(leader.now).observers] == [3]


def test_d13_a_leader_that_is_removed_does_not_count_itself_and_resigns_after_the_commit(leader: Bench) -> None:
    assert leader.ask(RemoveVoterRequest(key(1))) is None
    append_and_flush(leader)
    leader.fetched_by(2)
    assert leader.raft.high_watermark == 3, "one of two others, and the leader is none of them"
    assert leader.raft.is_leader
    leader.fetched_by(3)
    assert leader.raft.role == "Resigned"
    assert do.HighWatermarkChanged(4) in leader.effects
    assert len(leader.sent(EndQuorumEpochRequest)) == 2
    leader.wait_for("Unattached")
    leader.wait(20)
    assert leader.raft.role == "Unattached", "it runs for nothing any more"


def test_d13_a_leader_whose_own_removal_only_its_log_knows_of_can_be_elected_to_commit_it() -> None:
    """Found by a random schedule: of two voters, the other could never win against the longer log."""
    bench = Bench([1, 2], kraft_version=1)
    bench.become_leader()
    bench.fetched_by(2)
    assert bench.ask(RemoveVoterRequest(key(1))) is None
    bench.flush()
    again = Bench([1, 2], kraft_version=1, log=bench.log, state=bench.saved)
    assert again.raft.voters.ids == [2]
    again.wait_for("Prospective")
    assert set(again.votes(pre_vote=True)) == {2}
    again.reply(again.votes(pre_vote=True)[2], again.vote(True))
    again.reply(again.votes(pre_vote=False)[2], again.vote(True))
    append_and_flush(again)
    assert again.raft.is_leader
    assert again.raft.high_watermark is None
    again.fetched_by(2)
    assert (again.raft.role, again.raft.high_watermark) == ("Resigned", again.log.end_offset)


def test_an_update_is_answered_when_it_is_in_the_log(leader: Bench) -> None:
    assert leader.ask(MOVE_2) is None
    (versions,) = leader.sent(ApiVersionsRequest)
    assert [send.to.address for send in leader.of(do.SendRequest)] == [address(22)]
    leader.reply(versions, ApiVersionsResponse(NONE, range(2)))
    assert leader.answered() == QuorumEpochResponse(NONE, 1, 1, address(1))
    node = leader.raft.voters.get(2)
    assert node is not None
    assert node.address == address(22)
    assert error_of(leader, REMOVE_3) is ErrorCode.REQUEST_TIMED_OUT
    append_and_flush(leader)
    leader.fetched_by(3)
    assert leader.ask(REMOVE_3) is None


def test_an_update_of_a_stranger_or_with_other_versions_is_refused(leader: Bench) -> None:
    for request, response, error in [
        (MOVE_2._replace(voter=key(7)), ApiVersionsResponse(NONE, range(2)), ErrorCode.VOTER_NOT_FOUND),
        (MOVE_2, ApiVersionsResponse(NONE, range(1, 2)), ErrorCode.INVALID_REQUEST),
        (MOVE_2, ApiVersionsResponse(ErrorCode.UNKNOWN_SERVER_ERROR), ErrorCode.REQUEST_TIMED_OUT),
    ]:
        assert leader.ask(request) is None
        leader.reply(leader.sent(ApiVersionsRequest)[0], response)
        answered = leader.answered()
        assert isinstance(answered, QuorumEpochResponse)
        assert answered.error is error


def test_who_waits_for_a_change_hears_that_the_leader_changed(leader: Bench) -> None:
    assert leader.ask(REMOVE_3) is None
    waiting = leader.answer
    leader.flush()
    leader.follow(2, epoch=9)
    (answer,) = [e for e in leader.of(do.SendResponse) if e.answer is waiting]
    assert isinstance(answer.response, VoterChangeResponse)
    assert answer.response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_voter_to_be_says_which_versions_it_knows() -> None:
    assert Bench().ask(ApiVersionsRequest()) == ApiVersionsResponse(NONE, range(2))
