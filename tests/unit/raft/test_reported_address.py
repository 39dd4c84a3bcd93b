"""Where a leader is asked that is reported to be elsewhere than the voters' record says (SEC-Z16)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import control_records
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.following import FETCH
from strandline.raft.messages import Address, BeginQuorumEpochRequest, RaftFetchResponse, VoteRequest
from strandline.raft.timings import Timings
from strandline.raft.voters import VoterSet
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key
from tests.unit.raft.memory_log import MemoryLog

RECORDED = address(2)
REPORTED = Address("elsewhere", 9)
LEADS = RaftFetchResponse(NONE, 1, 2)
PATIENT = Timings(disconnect_grace_s=1000.0, fetch_timeout_s=1000.0)
DOES_NOT_LEAD = RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 2)


def report(epoch: int = 1) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(key(1), epoch, 2, {"CONTROLLER": REPORTED})


def following() -> Bench:
    """A follower of node 2 that asks for no election for a long time."""
    bench = Bench(kraft_version=1, timings=PATIENT)
    bench.follow()
    bench.answer_fetch()
    return bench


def fetch(bench: Bench) -> do.SendRequest:
    """The follower's own Fetch, not its search for another leader; time passes until it is under way."""
    while (request := bench.raft._core.outbox._on_the_way.get(FETCH)) is None:
        bench.wait(0.001)
    return next(send for send in bench.under_way if send.request is request)


def lose(bench: Bench, to: Address) -> None:
    send = fetch(bench)
    assert send.to.address == to
    bench.lose(send.request)


def probe(bench: Bench) -> do.SendRequest:
    """The question at the recorded address, beside the Fetches to the reported one."""
    while not (sent := [s for s in bench.under_way if s.to == on.Destination(-1, RECORDED)]):
        bench.wait(0.001)
    return sent[-1]


def at_reported_address() -> Bench:
    """A follower whose leader has answered where it is reported to be."""
    bench = following()
    bench.ask(report())
    for asked in (RECORDED, RECORDED):
        lose(bench, asked)
    bench.reply(fetch(bench).request, LEADS)
    assert fetch(bench).to.address == REPORTED
    return bench


def test_sec_z16_a_reported_address_is_forgotten_once_the_recorded_one_answers() -> None:
    bench = following()
    bench.ask(report())
    bench.answer_fetch()
    for _ in range(4):
        lose(bench, RECORDED)
    assert fetch(bench).to.address == RECORDED


def test_sec_z16_a_reported_address_is_asked_after_two_failures_in_turn_with_the_recorded_one() -> None:
    bench = following()
    bench.ask(report())
    for asked in (RECORDED, RECORDED, REPORTED, RECORDED, REPORTED):
        lose(bench, asked)
        assert bench.raft.leader_address() == RECORDED, "nobody else is given the reported one"
    assert fetch(bench).to.address == RECORDED
    bench.reply(fetch(bench).request, LEADS)
    for _ in range(4):
        lose(bench, RECORDED)


def test_sec_z16_while_the_reported_address_answers_the_recorded_one_is_asked_too() -> None:
    bench = at_reported_address()
    for _ in range(3):
        bench.lose(probe(bench).request)
        bench.reply(fetch(bench).request, LEADS)
        assert (fetch(bench).to.address, bench.raft.leader_address()) == (REPORTED, RECORDED)
    bench.reply(probe(bench).request, DOES_NOT_LEAD)
    assert fetch(bench).to.address == REPORTED
    given_up = fetch(bench).request
    bench.reply(probe(bench).request, LEADS)
    assert (fetch(bench).to.address, fetch(bench).request is given_up) == (RECORDED, False)
    bench.reply(given_up, LEADS._replace(high_watermark=7))
    assert bench.raft.high_watermark is None


def test_d8_the_recorded_address_is_not_asked_before_the_log_is_on_the_device() -> None:
    bench = at_reported_address()
    bench.log.append(1, [(b"", b"value")])
    bench.lose(probe(bench).request)
    bench.wait(1.0)
    assert [s for s in bench.under_way if s.to.address == RECORDED] == []
    bench.flush()
    assert probe(bench).request


def test_a_leader_that_moved_is_asked_where_its_new_record_says() -> None:
    bench = at_reported_address()
    log = MemoryLog()
    moved = bench.voter(2, 1)._replace(endpoints={"CONTROLLER": REPORTED})
    log.append(
        1, [control_records.voters_record(VoterSet([bench.voter(1, 1), moved, bench.voter(3, 1)]))], control=True
    )
    bench.reply(fetch(bench).request, LEADS._replace(records=log.batches[0].data))
    bench.under_way.clear()
    bench.flush()
    assert (bench.raft.leader_address(), fetch(bench).to.address) == (REPORTED, REPORTED)
    bench.wait(1.0)
    assert len(bench.under_way) == 1, "nothing is left to find out"


def test_a_reported_address_is_asked_if_another_node_answers_at_the_recorded_one() -> None:
    bench = following()
    bench.ask(report())
    for _ in range(2):
        assert fetch(bench).to.address == RECORDED
        bench.reply(fetch(bench).request, DOES_NOT_LEAD)
    assert fetch(bench).to.address == REPORTED


def test_a_reported_address_is_asked_in_time_if_nothing_comes_back_from_the_recorded_one() -> None:
    """Of two voters one has moved, and leads only if the other one fetches."""
    bench = Bench([1, 2], kraft_version=1)
    for epoch in (1, 2, 3):
        bench.ask(VoteRequest(key(1), epoch, key(2), 0, 9, pre_vote=False))
        bench.ask(report(epoch))
        assert (bench.raft.role, bench.raft.leader_id) == ("Follower", 2)
        if fetch(bench).to.address == REPORTED:
            return
        bench.wait_for("Prospective")
        bench.under_way.clear()
    pytest.fail("the leader was not asked where it says that it is")


def test_failures_of_one_leader_do_not_count_for_the_next() -> None:
    bench = Bench(kraft_version=1, timings=PATIENT)
    bench.follow(3)
    bench.lose(fetch(bench).request)
    bench.follow(2, epoch=2)
    bench.ask(report(2))
    lose(bench, RECORDED)
    assert fetch(bench).to.address == RECORDED


def test_the_search_for_another_leader_leaves_the_connection_to_the_reported_address_alone() -> None:
    """There is one connection for Fetches to each node: asking at another address would end it."""
    bench = following()
    bench.ask(report())
    for asked in (RECORDED, RECORDED):
        lose(bench, asked)
    assert fetch(bench).to.address == REPORTED
    searches = 0
    for _ in range(30):
        for send in [s for s in bench.under_way if s.request is not fetch(bench).request]:
            searches += send.to.id == 3
            assert send.to != on.Destination(2, RECORDED)
            bench.lose(send.request)
        bench.wait(0.2)
    assert searches > 10


def test_sec_z16_a_report_ends_when_the_recorded_address_answers_a_voter_that_asks_for_an_election() -> None:
    bench = Bench(kraft_version=1)
    bench.follow()
    bench.answer_fetch()
    bench.ask(report())
    lose(bench, RECORDED)
    bench.wait_for("Prospective")
    bench.ask(report())
    bench.confirm(2, LEADS)
    assert bench.raft.role == "Follower"
    lose(bench, RECORDED)
    assert fetch(bench).to.address == RECORDED
