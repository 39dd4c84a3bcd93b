"""Votes and pre-votes: who gives them, who asks for them, and when (D1-D4, docs/decisions/0005)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    ReplicaKey,
    VoteRequest,
    VoteResponse,
)
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import Cluster, Faults, address, key
from tests.unit.raft.memory_log import MemoryLog


def request(epoch: int = 1, *, by: int = 2, last: tuple[int, int] = (0, 0), pre_vote: bool = False) -> VoteRequest:
    return VoteRequest(key(1), epoch, key(by), *last, pre_vote=pre_vote)


def granted(bench: Bench, vote: VoteRequest) -> bool:
    response = bench.ask(vote)
    assert isinstance(response, VoteResponse)
    assert response.error is NONE
    return response.granted


def log_of(*epochs: int) -> MemoryLog:
    """A flushed log with one record of each of these epochs."""
    log = MemoryLog()
    for epoch in epochs:
        log.append(epoch, [(b"", b"value")])
    log.flush(log.end_offset)
    return log


def test_d1_a_vote_is_saved_before_it_is_said() -> None:
    bench = Bench()
    assert granted(bench, request())
    kinds = [kind for kind in bench.kinds() if kind in (do.Save, do.SendResponse)]
    assert kinds[-1] is do.SendResponse
    assert do.Save in kinds[:-1]
    assert bench.saved == ElectionState(1, -1, key(2))


def test_d1_a_candidacy_is_saved_before_it_is_said() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(True))
    kinds = bench.kinds()
    assert kinds.index(do.Save) < kinds.index(do.SendRequest)
    assert bench.saved == ElectionState(1, -1, key(1))


def test_d2_a_voter_votes_once_in_an_epoch() -> None:
    bench = Bench()
    assert granted(bench, request(1, by=2))
    assert not granted(bench, request(1, by=3))
    assert granted(bench, request(1, by=2)), "the one that has the vote may ask again"
    assert granted(bench, request(2, by=3))


def test_d2_the_vote_is_kept_through_ones_own_lost_pre_vote() -> None:
    bench = Bench()
    assert granted(bench, request(1, by=2))
    bench.wait_for("Prospective")
    assert not granted(bench, request(1, by=3))
    for node_id in (2, 3):
        bench.reply(bench.votes(pre_vote=True)[node_id], bench.vote(False))
    assert bench.raft.role == "Unattached"
    assert not granted(bench, request(1, by=3))
    assert bench.saved.voted == key(2)


def test_d2_the_vote_is_remembered_over_a_restart() -> None:
    bench = Bench(state=ElectionState(4, -1, key(2)))
    assert not granted(bench, request(4, by=3))
    assert granted(bench, request(4, by=2))


def test_d2_a_candidate_that_lost_its_tail_does_not_get_its_vote_again() -> None:
    bench = Bench(log=log_of(1, 1), state=ElectionState(1))
    assert granted(bench, request(2, last=(1, 3)))
    assert not granted(bench, request(2, last=(1, 1)))


@pytest.mark.parametrize(
    ("last", "expected"),
    [((2, 2), True), ((2, 9), True), ((3, 0), True), ((2, 1), False), ((1, 9), False), ((0, 0), False)],
)
@pytest.mark.parametrize("pre_vote", [True, False])
def test_d2_only_a_log_as_new_as_ones_own_gets_a_vote(last: tuple[int, int], expected: bool, pre_vote: bool) -> None:
    bench = Bench(log=log_of(1, 2), state=ElectionState(2))
    assert granted(bench, request(4, last=last, pre_vote=pre_vote)) is expected


def test_d2_who_knows_the_leader_or_leads_or_runs_does_not_vote() -> None:
    follower = Bench()
    follower.follow(3, epoch=1)
    assert not granted(follower, request(1))

    candidate = Bench()
    candidate.wait_for("Prospective")
    candidate.reply(candidate.votes(pre_vote=True)[2], candidate.vote(True))
    assert not granted(candidate, request(1))

    leader = Bench()
    leader.become_leader()
    assert not granted(leader, request(1, last=(0, 9)))

    resigned = Bench(state=ElectionState(1, 1))
    assert resigned.raft.role == "Resigned"
    assert not granted(resigned, request(1, last=(0, 9)))


@pytest.mark.parametrize(
    ("vote", "error"),
    [
        (request(1, last=(1, 0)), ErrorCode.INVALID_REQUEST),
        (request(1, last=(2, 0), pre_vote=True), ErrorCode.INVALID_REQUEST),
        (request(1, last=(0, -1)), ErrorCode.INVALID_REQUEST),
        (request(1, last=(-1, 0)), ErrorCode.INVALID_REQUEST),
        (request(1, by=1), ErrorCode.INVALID_REQUEST),
        (request(2**31 - 1), ErrorCode.INVALID_REQUEST),
        (request(1)._replace(candidate=ReplicaKey(-1)), ErrorCode.INVALID_REQUEST),
        (request(0), ErrorCode.INVALID_REQUEST),
        (request(1)._replace(voter=key(2)), ErrorCode.INVALID_VOTER_KEY),
        (request(1)._replace(voter=ReplicaKey(1, key(2).directory_id)), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_d3_an_impossible_vote_is_refused(vote: VoteRequest, error: ErrorCode) -> None:
    bench = Bench()
    response = bench.ask(vote)
    assert isinstance(response, VoteResponse)
    assert (response.error, response.granted) == (error, False)
    assert bench.saved.voted is None


def test_d3_an_older_epoch_is_fenced_and_told_the_newer_one() -> None:
    bench = Bench(state=ElectionState(5))
    response = bench.ask(request(4))
    assert response == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, 5, -1)


def test_d3_a_newer_epoch_makes_one_unattached_even_if_it_refuses() -> None:
    bench = Bench()
    bench.follow()
    bench.log.append(1, [(b"", b"value")])
    assert not granted(bench, request(7))
    assert (bench.raft.role, bench.raft.epoch) == ("Unattached", 7)


def in_touch(role: str, kraft_version: int) -> Bench:
    bench = Bench(kraft_version=kraft_version)
    if role == "Leader":
        bench.become_leader()
    else:
        bench.follow()
        bench.answer_fetch()
    return bench


@pytest.mark.parametrize("role", ["Leader", "Follower"])
@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("candidate", [key(3), ReplicaKey(3), key(99), ReplicaKey(3, key(9).directory_id)])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_sec_z16_nobody_who_asks_for_votes_unseats_a_leader_that_is_heard(
    role: str, kraft_version: int, candidate: ReplicaKey, pre_vote: bool
) -> None:
    bench = in_touch(role, kraft_version)
    before = bench.raft.role, bench.raft.epoch, bench.raft.leader_id, bench.saved
    for epoch in (1, 2, 51):
        asked = VoteRequest(key(1), epoch, candidate, 1, 10**9, pre_vote)
        if epoch == 1 and not pre_vote:
            asked = asked._replace(last_epoch=0)
        response = bench.ask(asked)
        assert isinstance(response, VoteResponse)
        assert not response.granted
        assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id, bench.saved) == before


@pytest.mark.parametrize("role", ["Leader", "Follower"])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_candidate_of_a_newer_epoch_is_refused_in_its_own_epoch(role: str, pre_vote: bool) -> None:
    """Kafka's candidates count that as a refusal; of an older epoch they take no note, and ask again at once."""
    bench = in_touch(role, 1)
    assert bench.ask(VoteRequest(key(1), 7, key(3), 1, 9, pre_vote)) == VoteResponse(NONE, 7, -1)
    assert bench.ask(VoteRequest(key(2), 7, key(3), 1, 9, pre_vote)) == VoteResponse(ErrorCode.INVALID_VOTER_KEY, 7, -1)


def test_a_candidate_that_is_refused_because_the_others_hear_their_leader_does_not_ask_again_at_once() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(True))
    asked = bench.votes(pre_vote=False)
    other = in_touch("Follower", 0)
    for node_id in (2, 3):
        request_ = asked[node_id]._replace(voter=key(1), epoch=7, candidate=key(3))
        response = other.ask(request_)
        assert isinstance(response, VoteResponse)
        bench.reply(asked[node_id], response._replace(epoch=response.epoch - 7 + bench.raft.epoch))
    assert bench.votes(pre_vote=False) == {}
    assert bench.wait_for("Prospective") <= 0.2


def test_sec_z16_configured_voters_vote_for_one_of_themselves() -> None:
    bench = Bench()
    for pre_vote in (False, True):
        response = bench.ask(VoteRequest(key(1), 3, key(99), 0, 10**9, pre_vote))
        assert isinstance(response, VoteResponse)
        assert response == VoteResponse(ErrorCode.INCONSISTENT_VOTER_SET, 3, -1)
    assert (bench.raft.epoch, bench.saved.voted) == (0, None)


def test_a_voter_that_is_behind_votes_for_one_that_it_does_not_know_yet() -> None:
    """It may be the only one with everything that is committed (KIP-853)."""
    bench = Bench(kraft_version=1)
    assert granted(bench, VoteRequest(key(1), 3, key(4), 2, 10, pre_vote=True))
    assert granted(bench, VoteRequest(key(1), 3, key(4), 2, 10, pre_vote=False))


def test_a_request_without_directory_means_whom_it_reaches() -> None:
    bench = Bench()
    assert granted(bench, request()._replace(voter=ReplicaKey(1)))


def test_d4_a_pre_vote_neither_raises_the_epoch_nor_is_saved() -> None:
    bench = Bench()
    assert granted(bench, request(0, pre_vote=True))
    assert do.Save not in bench.kinds()
    bench.wait_for("Prospective")
    assert bench.raft.epoch == 0
    assert do.Save not in bench.kinds()


def test_d4_a_follower_grants_a_pre_vote_until_it_has_fetched() -> None:
    bench = Bench()
    bench.follow(3)
    assert granted(bench, request(1, pre_vote=True))
    bench.answer_fetch()
    assert not granted(bench, request(1, pre_vote=True))


def test_d4_and_again_when_its_connection_to_the_leader_is_lost() -> None:
    bench = Bench()
    bench.follow(3)
    bench.answer_fetch()
    bench.lose_leader()
    assert granted(bench, request(1, pre_vote=True))


def test_d4_a_leader_never_grants_a_pre_vote_the_others_do() -> None:
    leader = Bench()
    leader.become_leader()
    assert not granted(leader, request(1, last=(1, 9), pre_vote=True))
    resigned = Bench(state=ElectionState(1, 1))
    assert granted(resigned, request(1, pre_vote=True))
    candidate = Bench(state=ElectionState(1, -1, key(1)))
    assert candidate.raft.role == "Candidate"
    assert granted(candidate, request(1, pre_vote=True))


def test_a_voter_that_starts_without_a_leader_asks_within_a_tenth_of_a_second() -> None:
    bench = Bench()
    assert bench.wait_for("Prospective") <= 0.1
    assert set(bench.votes(pre_vote=True)) == {2, 3}


def test_the_only_voter_elects_itself_at_once() -> None:
    bench = Bench([1])
    assert bench.raft.role == "Leader"
    assert bench.saved == ElectionState(1, 1, key(1))
    restarted = Bench([1], state=bench.saved, log=bench.log)
    assert (restarted.raft.role, restarted.raft.epoch) == ("Leader", 2)


def test_a_majority_of_pre_votes_makes_a_candidate_and_of_votes_a_leader() -> None:
    bench = Bench(range(1, 6))
    bench.wait_for("Prospective")
    asked = bench.votes(pre_vote=True)
    bench.reply(asked[2], bench.vote(True))
    assert bench.raft.role == "Prospective"
    bench.reply(asked[3], bench.vote(True))
    assert (bench.raft.role, bench.raft.epoch) == ("Candidate", 1)
    asked = bench.votes(pre_vote=False)
    bench.reply(asked[4], bench.vote(True))
    bench.reply(asked[5], bench.vote(True))
    assert bench.raft.role == "Leader"


def test_a_pre_vote_that_comes_late_is_no_vote() -> None:
    bench = Bench(range(1, 6))
    bench.wait_for("Prospective")
    asked = bench.votes(pre_vote=True)
    bench.reply(asked[2], bench.vote(True))
    bench.reply(asked[3], bench.vote(True))
    for late in (4, 5):
        bench.step(on.Replied(on.Destination(late, None), asked[late], VoteResponse(NONE, 1, -1, True)))  # type: ignore[arg-type]
    assert bench.raft.role == "Candidate"


def test_who_has_just_granted_a_pre_vote_waits_a_round_before_it_asks() -> None:
    bench = Bench()
    bench.follow(3)
    bench.answer_fetch()
    bench.lose_leader()
    assert granted(bench, request(1, pre_vote=True))
    assert bench.wait_for("Prospective") >= 0.1


def test_of_two_that_ask_each_other_one_gives_way() -> None:
    lower, higher = Bench(me=1), Bench(me=2)
    lower.wait_for("Prospective")
    higher.wait_for("Prospective")
    assert granted(lower, request(0, by=2, pre_vote=True))
    assert lower.raft.role == "Unattached"
    assert granted(higher, VoteRequest(key(2), 0, key(1), 0, 0, pre_vote=True))
    assert higher.raft.role == "Prospective"


def test_lost_rounds_wait_longer_and_longer() -> None:
    bench = Bench(seed=3)
    waits = []
    for _ in range(6):
        waits.append(bench.wait_for("Prospective"))
        asked = bench.votes(pre_vote=True)
        bench.under_way = [s for s in bench.under_way if s.request in asked.values()]
        bench.reply(asked[2], bench.vote(False))
        bench.reply(asked[3], bench.vote(False))
    assert waits[0] <= 0.1
    assert waits[1] <= 0.2
    assert waits[-1] > 0.4
    assert max(waits) <= 1.0
    assert bench.raft.epoch == 0, "nobody's epoch was raised"


def test_a_prospective_goes_back_to_the_leader_that_somebody_else_hears() -> None:
    bench = Bench()
    bench.follow(3)
    bench.answer_fetch()
    bench.lose_leader()
    bench.wait_for("Prospective")
    assert bench.raft.leader_id == 3, "it keeps its leader in mind"
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(False, leader=3))
    assert bench.raft.role == "Follower"
    assert do.Save not in bench.kinds()
    assert do.LeaderChanged not in bench.kinds()


def test_d4_who_has_heard_no_from_the_leader_itself_grants_no_pre_vote() -> None:
    bench = Bench()
    bench.follow(3)
    bench.answer_fetch()
    bench.lose_leader()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[3], bench.vote(False, leader=3))
    assert bench.raft.role == "Follower"
    assert not granted(bench, request(1, pre_vote=True))


def test_a_pre_vote_answer_that_names_a_newer_leader_is_followed() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(False, leader=3, epoch=4))
    assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id) == ("Follower", 4, 3)


def test_a_voter_that_does_not_know_the_pre_vote_makes_a_candidate() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], VoteResponse(ErrorCode.UNSUPPORTED_VERSION, 0, -1))
    assert bench.raft.role == "Candidate"


def test_an_unanswered_vote_is_asked_again_after_a_pause() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.lose(bench.votes(pre_vote=True)[2])
    assert 2 not in bench.votes(pre_vote=True)
    bench.wait(0.02)
    assert 2 in bench.votes(pre_vote=True)


def test_a_candidate_that_lost_asks_for_a_pre_vote_again_without_waiting_for_the_timeout() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(True))
    asked = bench.votes(pre_vote=False)
    bench.reply(asked[2], bench.vote(False))
    bench.reply(asked[3], bench.vote(False))
    assert bench.wait_for("Prospective") <= 0.2


def test_a_candidate_goes_on_after_a_restart_in_its_epoch() -> None:
    bench = Bench(state=ElectionState(3, -1, key(1)))
    assert (bench.raft.role, bench.raft.epoch) == ("Candidate", 3)
    assert set(bench.votes(pre_vote=False)) == {2, 3}


def test_who_has_voted_for_a_candidate_that_is_gone_does_not_wait_for_the_timeout() -> None:
    bench = Bench()
    assert granted(bench, request(1, by=2))
    bench.step(on.Disconnected(2))
    assert bench.wait_for("Prospective") <= 0.2


def test_an_epoch_older_than_the_log_is_not_believed() -> None:
    bench = Bench(log=log_of(3), state=ElectionState(2, 2, key(2)))
    assert (bench.raft.role, bench.saved) == ("Unattached", ElectionState(3))


def test_who_is_told_that_it_leads_a_newer_epoch_resigns_from_it() -> None:
    bench = Bench()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[2], bench.vote(False, leader=1, epoch=5))
    assert (bench.raft.role, bench.saved) == ("Resigned", ElectionState(5, 1, key(1)))
    assert not granted(bench, request(5, last=(4, 9)))


@pytest.mark.parametrize("voters", [2, 3])
def test_connections_that_close_all_the_time_cost_no_epoch(voters: int) -> None:
    cluster = Cluster(range(1, voters + 1), faults=Faults(delay_s=(0.001, 0.01), flush_s=(0.001, 0.15)))
    for second in range(3):
        for _ in range(100):
            for node in cluster.nodes.values():
                for other_id in cluster.nodes.keys() - {node.id}:
                    cluster.step(node, on.Disconnected(other_id))
            cluster.run(0.01)
        leader = cluster.leader()
        assert leader is not None
        assert cluster.invariants.committed_end >= second
        cluster.write(leader.id)
    assert {node.saved.epoch for node in cluster.nodes.values()} == {1}


@pytest.mark.parametrize("epoch", [2**31 - 1, 2**31 - 2, 1 + 2**20 + 1])
def test_nobody_who_asks_is_believed_to_be_a_million_epochs_ahead(epoch: int) -> None:
    bench = Bench()
    bench.follow()
    vote = VoteRequest(key(1), epoch, key(3), 1, 10, False)
    begin = BeginQuorumEpochRequest(key(1), epoch, 3, {"CONTROLLER": address(3)})
    end = EndQuorumEpochRequest(epoch, 3, (), {"CONTROLLER": address(3)})
    for request in (vote, begin, end):
        response = bench.ask(request)
        assert response is not None
        assert response.error is ErrorCode.INVALID_REQUEST
        assert bench.raft.epoch == 1
