"""Finding the leader: brokers, observers, and voters that nobody tells (D12)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.messages import Address, RaftFetchRequest, RaftFetchResponse, VoteRequest
from tests.unit.raft.bench import Bench
from tests.unit.raft.cluster import address, key
from tests.unit.raft.memory_log import MemoryLog


def broker(**options: object) -> Bench:
    return Bench(me=9, is_controller=False, **options)  # type: ignore[arg-type]


def question(bench: Bench) -> RaftFetchRequest:
    return next(r for r in bench.sent(RaftFetchRequest) if r.max_wait_s == 0)


def test_a_broker_asks_one_voter_after_the_other_with_pauses() -> None:
    bench = broker()
    asked = set()
    pauses = []
    for _ in range(20):
        request = question(bench)
        asked.add(bench.under_way[0].to.id)
        bench.lose(request)
        began = bench.now
        bench.now = bench.raft.deadline
        pauses.append(bench.now - began)
        bench.step(on.Tick())
    assert asked == {1, 2, 3}
    assert 0.01 <= pauses[0] <= 0.02
    assert 0.1 <= pauses[-1] <= 0.2, "it never gives up, nor storms"
    assert bench.raft.role == "Unattached"


def test_a_broker_that_knows_no_voters_asks_the_bootstrap_servers() -> None:
    bench = broker(voters=[], bootstrap=[5])
    assert bench.under_way[0].to == on.Destination(-1, address(5))
    bench.reply(question(bench), RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 4, 2, leader_address=address(2)))
    assert (bench.raft.role, bench.raft.epoch, bench.raft.leader_id) == ("Follower", 4, 2)
    assert bench.raft.leader_address() == address(2)
    assert bench.under_way[-1].to == on.Destination(2, address(2))


def test_the_leader_of_the_same_epoch_is_learnt_from_its_answer() -> None:
    bench = broker()
    bench.reply(question(bench), RaftFetchResponse(ErrorCode.NONE, 0, 2, high_watermark=7, records=b"left alone"))
    assert (bench.raft.role, bench.raft.leader_id) == ("Follower", 2)
    assert bench.of(do.AppendFetched) == []
    assert bench.raft.high_watermark is None


@pytest.mark.parametrize(
    "response",
    [
        RaftFetchResponse(ErrorCode.UNKNOWN_LEADER_EPOCH, 0, 1),
        RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 2**31 - 1, 2, leader_address=address(2)),
        RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, -1, 2, leader_address=address(2)),
        RaftFetchResponse(ErrorCode.INVALID_REQUEST, -1, -1),
        RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, -1),
        RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 88),
    ],
)
def test_an_answer_that_teaches_nothing_is_followed_by_a_pause(response: RaftFetchResponse) -> None:
    bench = broker()
    bench.reply(question(bench), RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 1, -1))
    bench.reply(question(bench), response)
    assert (bench.raft.role, bench.raft.epoch) == ("Unattached", 1)
    assert bench.of(do.SendRequest) == []
    assert bench.raft.deadline > bench.now


def test_a_broker_that_loses_its_leader_asks_the_others_and_never_runs() -> None:
    bench = broker()
    bench.reply(question(bench), RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 1, 2))
    bench.lose(bench.fetch())
    assert question(bench).offset == 0, "the others are asked at once"
    assert bench.sign_of_life().offset == 0, "and so is the leader again"
    bench.wait(30)
    assert bench.raft.role == "Follower"


def test_a_broker_whose_leader_is_silent_asks_the_others_after_the_fetch_timeout() -> None:
    bench = broker()
    bench.reply(question(bench), RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 1, 2))
    bench.wait(1.9)
    assert len(bench.sent(RaftFetchRequest)) == 1
    bench.wait(0.2)
    assert question(bench).epoch == 1


def test_a_controller_that_is_no_voter_never_runs() -> None:
    bench = Bench(me=7, kraft_version=1)
    bench.wait(30)
    assert bench.raft.role == "Unattached"
    bench.follow(2)
    bench.step(on.Disconnected(2))
    bench.wait(30)
    assert bench.raft.role == "Follower"


def test_a_voter_without_a_leader_asks_too() -> None:
    bench = Bench()
    assert question(bench).epoch == 0


def test_d8_a_question_says_only_what_is_on_the_device() -> None:
    bench = Bench()
    bench.follow(2, epoch=1)
    other = MemoryLog()
    other.append(1, [(b"", b"value")])
    bench.answer_fetch(records=other.batches[0].data)
    bench.wait(2)  # the leader is silent, and so is the disk
    bench.ask(VoteRequest(key(1), 2, key(3), 1, 9, pre_vote=False))
    assert bench.raft.role == "Unattached"
    assert bench.sent(RaftFetchRequest) == [], "whom it asks may lead, and would count it for the high watermark"
    bench.flush()
    assert question(bench).offset == 1


def test_sec_z16_a_voter_that_another_one_names_is_asked_where_its_record_says() -> None:
    bench = Bench()
    asked = question(bench)
    bench.reply(
        asked, RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, 3, leader_address=Address("elsewhere", 9))
    )
    assert (bench.raft.leader_id, bench.raft.leader_address()) == (3, address(3))
    bench.wait(0.5)
    assert Address("elsewhere", 9) not in [send.to.address for send in bench.under_way]


def test_an_observer_follows_the_leader_that_a_bootstrap_server_names() -> None:
    """It knows no voters yet, or only those of old; it asked where its configuration says."""
    bench = Bench([], is_controller=False, bootstrap=[2], kraft_version=1)
    asked = question(bench)
    bench.reply(asked, RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, 3, leader_address=address(3)))
    assert (bench.raft.role, bench.raft.leader_address()) == ("Follower", address(3))
