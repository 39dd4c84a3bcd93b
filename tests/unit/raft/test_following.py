"""Following: one Fetch after the other, nothing before it is on the device, nothing that does not fit (D8, D10, D11)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import control_records
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    FetchSnapshotResponse,
    OffsetAndEpoch,
    RaftFetchRequest,
    RaftFetchResponse,
    UpdateVoterRequest,
    VoteRequest,
)
from strandline.raft.timings import Timings
from strandline.raft.voters import VoterSet
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key, voter
from tests.unit.raft.memory_log import MemoryLog


@pytest.fixture
def follower() -> Bench:
    """Of node 2, in epoch 3, with epochs 1 (0-2) and 3 (3-4) in its log."""
    bench = Bench(log=local_log())
    bench.follow(2, epoch=3)
    return bench


def local_log() -> MemoryLog:
    log = MemoryLog()
    for epoch in (1, 1, 1, 3, 3):
        log.append(epoch, [(b"", b"value")])
    log.flush(5)
    return log


def batch(offset: int, epoch: int = 3, count: int = 1) -> bytes:
    other = MemoryLog()
    other.start = OffsetAndEpoch(offset, 0)
    other.append(epoch, [(b"", b"fetched")] * count)
    return other.batches[0].data


def test_a_follower_says_where_its_log_ends(follower: Bench) -> None:
    fetch = follower.fetch()
    assert (fetch.epoch, fetch.offset, fetch.last_fetched_epoch, fetch.high_watermark) == (3, 5, 3, -1)


def test_d8_the_next_fetch_comes_when_the_last_records_are_on_the_device(follower: Bench) -> None:
    follower.answer_fetch(records=batch(5, count=2), high_watermark=6)
    assert follower.of(do.AppendFetched) == [do.AppendFetched(batch(5, count=2))]
    assert follower.of(do.HighWatermarkChanged) == [do.HighWatermarkChanged(6)]
    follower.wait(0.5)
    assert [r for r in follower.under_way if r.to.id == 2 and r.request is not None] == []
    follower.flush()
    assert (follower.fetch().offset, follower.fetch().high_watermark) == (7, 6)


def test_d8_a_log_that_was_not_flushed_before_a_restart_is_flushed_first() -> None:
    log = local_log()
    log.flushed_offset = 3
    bench = Bench(log=log, state=ElectionState(3, 2))
    assert do.Flush in bench.kinds()
    assert bench.under_way == []
    bench.flush()
    assert bench.fetch().offset == 5


def test_a_high_watermark_beyond_the_log_is_cut_and_an_older_one_ignored(follower: Bench) -> None:
    follower.answer_fetch(high_watermark=99)
    assert follower.raft.high_watermark == 5
    follower.answer_fetch(high_watermark=3)
    assert follower.raft.high_watermark == 5
    follower.answer_fetch(high_watermark=-1)
    assert follower.raft.high_watermark == 5


@pytest.mark.parametrize(
    ("diverging", "end_offset"),
    [((4, 3), 4), ((9, 2), 3), ((3, 1), 3), ((2, 1), 2), ((1, 1), 1), ((0, 0), 0)],
)
def test_d10_the_log_is_cut_where_it_may_agree(follower: Bench, diverging: tuple[int, int], end_offset: int) -> None:
    follower.answer_fetch(diverging_epoch=OffsetAndEpoch(*diverging))
    assert follower.of(do.Truncate) == [do.Truncate(end_offset)]
    assert follower.of(do.SendRequest) == [], "the log is not cut yet"
    assert follower.raft.deadline == follower.now
    follower.step(on.Tick())
    assert follower.fetch().offset == end_offset


def test_d10_what_is_committed_is_never_cut(follower: Bench) -> None:
    follower.answer_fetch(high_watermark=4)
    follower.answer_fetch(diverging_epoch=OffsetAndEpoch(3, 1))
    assert len(follower.of(do.FailQuorum)) == 1
    assert follower.of(do.Truncate) == []
    assert follower.log.end_offset == 5


def test_d10_nor_what_a_snapshot_says() -> None:
    log = local_log()
    log.take_snapshot(3)
    bench = Bench(log=log)
    bench.follow(2, epoch=3)
    bench.answer_fetch(diverging_epoch=OffsetAndEpoch(2, 1))
    assert len(bench.of(do.FailQuorum)) == 1


def _broken(data: bytes) -> bytes:
    return data[:70] + bytes([data[70] ^ 1]) + data[71:]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(_broken(batch(5)), id="a wrong CRC"),
        pytest.param(batch(5) + _broken(batch(6)), id="a wrong CRC behind a right one"),
        pytest.param(batch(6), id="a gap"),
        pytest.param(batch(4), id="an overlap"),
        pytest.param(batch(5) + batch(7), id="a gap between"),
        pytest.param(batch(5, epoch=4), id="an epoch that is yet to come"),
        pytest.param(batch(5, epoch=2), id="an epoch that is over"),
        pytest.param(batch(5)[:40], id="half a batch"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n" * 9, id="no batch at all"),
    ],
)
def test_a11_records_that_do_not_fit_are_dropped_and_fetched_again(follower: Bench, records: bytes) -> None:
    follower.answer_fetch(records=records, high_watermark=6)
    assert follower.effects == []
    assert follower.raft.high_watermark is None
    follower.wait(0.02)
    assert follower.fetch().offset == 5


def test_a_batch_that_was_cut_by_the_size_asked_for_is_left_out(follower: Bench) -> None:
    follower.answer_fetch(records=batch(5) + batch(6)[:50])
    assert follower.of(do.AppendFetched) == [do.AppendFetched(batch(5))]


def test_a_response_from_another_epoch_is_not_believed(follower: Bench) -> None:
    fetch = follower.fetch()
    follower.reply(fetch, RaftFetchResponse(NONE, 2, 2, records=batch(5)))
    assert follower.of(do.AppendFetched) == []
    follower.follow(3, epoch=4)
    follower.step(on.Replied(on.Destination(2, address(2)), fetch, RaftFetchResponse(NONE, 4, 3, records=batch(5))))
    assert follower.of(do.AppendFetched) == []


def test_a_response_to_another_question_does_no_harm(follower: Bench) -> None:
    follower.reply(follower.fetch(), FetchSnapshotResponse(NONE, 3, 2))
    assert follower.effects == []


# Losing the leader (docs/decisions/0005)


def test_a_voter_that_loses_its_connection_asks_for_a_pre_vote_within_a_tenth_of_a_second(follower: Bench) -> None:
    follower.answer_fetch()
    follower.lose_leader()
    assert follower.wait_for("Prospective") <= 0.1


def test_a_connection_that_closes_beside_a_fetch_that_goes_on_is_no_news(follower: Bench) -> None:
    follower.answer_fetch()
    for _ in range(100):
        follower.step(on.Disconnected(2))
        follower.wait(0.01)
    assert follower.raft.role == "Follower"
    assert follower.ask(VoteRequest(key(1), 3, key(3), 3, 9, pre_vote=True)) == follower.vote(False, leader=2)


def test_but_it_is_while_a_snapshot_is_put_in_place_since_nothing_is_fetched_then(follower: Bench) -> None:
    snapshot = OffsetAndEpoch(10, 3)
    follower.answer_fetch(snapshot_id=snapshot)
    follower.reply(follower.snapshot_fetch(), FetchSnapshotResponse(NONE, 3, 2, snapshot, 1, 0, b"1"))
    follower.step(on.Disconnected(2))
    assert follower.ask(VoteRequest(key(1), 3, key(3), 3, 9, pre_vote=True)) == follower.vote(True, leader=2)


def test_of_a_leader_that_may_be_gone_a_sign_of_life_is_wanted_at_once(follower: Bench) -> None:
    follower.answer_fetch()
    follower.lose_leader()
    began = follower.now
    assert follower.sign_of_life().max_wait_s == 0
    assert follower.now == began
    assert follower.lose(follower.sign_of_life()) == [], "but only once without a pause"


def test_so_it_does_when_the_leader_says_that_it_leads_no_more(follower: Bench) -> None:
    follower.reply(follower.fetch(), RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 3, -1))
    assert follower.wait_for("Prospective") <= 0.1


def test_it_does_not_when_the_leader_answers_in_time(follower: Bench) -> None:
    follower.answer_fetch()
    follower.lose_leader()
    follower.reply(follower.sign_of_life(), RaftFetchResponse(NONE, 3, 2))
    follower.wait(1.0)
    assert follower.raft.role == "Follower"
    assert follower.fetch().max_wait_s > 0


def test_other_connections_are_no_news(follower: Bench) -> None:
    follower.answer_fetch()
    follower.step(on.Disconnected(3))
    follower.wait(1.0)
    assert follower.raft.role == "Follower"


def test_a_silent_leader_is_left_after_the_fetch_timeout(follower: Bench) -> None:
    follower.answer_fetch()
    assert follower.wait_for("Prospective") == pytest.approx(2.0)


def test_a_node_that_is_stopping_does_not_ask_for_an_election(follower: Bench) -> None:
    follower.step(on.Resign())
    follower.step(on.Disconnected(2))
    follower.wait(5.0)
    assert follower.raft.role == "Follower"


# Voters in the log


def test_d13_voters_count_as_soon_as_they_are_in_the_log_and_until_they_are_cut_out() -> None:
    bench = Bench(kraft_version=1)
    bench.follow(2)
    other = MemoryLog()
    added = VoterSet(voter(n) for n in (1, 2, 3, 4))
    other.append(1, [control_records.kraft_version_record(1), control_records.voters_record(added)], control=True)
    bench.answer_fetch(records=other.batches[0].data)
    assert bench.raft.voters == added
    bench.flush()
    bench.answer_fetch(diverging_epoch=OffsetAndEpoch(0, 0))
    assert bench.raft.voters.ids == [1, 2, 3]


def test_a_voters_record_that_cannot_be_is_refused() -> None:
    bench = Bench(kraft_version=1)
    bench.follow(2)
    other = MemoryLog()
    other.append(1, [control_records.voters_record(VoterSet())], control=True)
    bench.answer_fetch(records=other.batches[0].data)
    assert bench.effects == []
    garbage = MemoryLog()
    garbage.append(1, [(control_records.voters_record(VoterSet())[0], b"\xff\xff\xff")], control=True)
    bench.wait(0.05)
    bench.answer_fetch(records=garbage.batches[0].data)
    assert bench.effects == []


def test_a_voter_whose_endpoints_changed_tells_the_leader() -> None:
    log = MemoryLog()
    moved = [voter(1)._replace(endpoints={"CONTROLLER": address(99)}), voter(2), voter(3)]
    log.append(1, [control_records.voters_record(VoterSet(moved))], control=True)
    log.flush(1)
    bench = Bench(kraft_version=1, log=log, state=ElectionState(1))
    bench.follow(2)
    assert bench.sent(UpdateVoterRequest) == []
    bench.answer_fetch()
    (update,) = bench.sent(UpdateVoterRequest)
    assert (update.voter, update.endpoints, update.kraft_versions) == (key(1), {"CONTROLLER": address(1)}, range(2))
    bench.lose(update)
    for _ in range(6):
        bench.wait(0.5)
        bench.answer_fetch()
    assert bench.sent(UpdateVoterRequest) == [], "one change at a time is asked for, not too often"
    for _ in range(3):
        bench.wait(0.5)
        bench.answer_fetch()
    assert len(bench.sent(UpdateVoterRequest)) == 1


# Snapshots


def test_d11_a_snapshot_is_fetched_in_order_and_put_in_place() -> None:
    bench = Bench()
    bench.follow(2)
    snapshot = OffsetAndEpoch(10, 1)
    bench.answer_fetch(snapshot_id=snapshot)
    assert (bench.snapshot_fetch().snapshot_id, bench.snapshot_fetch().position) == (snapshot, 0)
    bench.reply(bench.snapshot_fetch(), FetchSnapshotResponse(NONE, 1, 2, snapshot, 10, 0, b"123456"))
    assert bench.of(do.StoreChunk) == [do.StoreChunk(snapshot, 0, b"123456")]
    assert bench.snapshot_fetch().position == 6
    bench.reply(bench.snapshot_fetch(), FetchSnapshotResponse(NONE, 1, 2, snapshot, 10, 6, b"7890"))
    assert bench.effects == [do.StoreChunk(snapshot, 6, b"7890"), do.FinishSnapshot(snapshot)]
    bench.wait(10)
    assert bench.raft.role == "Follower", "while the log is replaced nobody runs for anything"
    bench.log.start = snapshot
    bench.log.flushed_offset = 10
    bench.step(on.SnapshotLoaded(snapshot, VoterSet(voter(n) for n in (1, 2)), 1))
    assert (bench.raft.voters.ids, bench.raft.kraft_version, bench.raft.high_watermark) == ([1, 2], 1, 10)


@pytest.mark.parametrize(
    "response",
    [
        FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, 1, 2),
        FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE, 1, 2),
        FetchSnapshotResponse(NONE, 1, 2, OffsetAndEpoch(11, 1), 10, 0, b"12"),
        FetchSnapshotResponse(NONE, 1, 2),
    ],
)
def test_d11_a_snapshot_that_the_leader_has_no_more_is_given_up(response: FetchSnapshotResponse) -> None:
    bench = Bench()
    bench.follow(2)
    bench.answer_fetch(snapshot_id=OffsetAndEpoch(10, 1))
    bench.reply(bench.snapshot_fetch(), response)
    assert bench.fetch().offset == 0


@pytest.mark.parametrize(("position", "size", "chunk"), [(5, 10, b"12"), (0, 10, b""), (0, 1, b"12"), (-1, 10, b"1")])
def test_d11_a_chunk_that_does_not_fit_is_dropped(position: int, size: int, chunk: bytes) -> None:
    bench = Bench()
    bench.follow(2)
    snapshot = OffsetAndEpoch(10, 1)
    bench.answer_fetch(snapshot_id=snapshot)
    bench.reply(bench.snapshot_fetch(), FetchSnapshotResponse(NONE, 1, 2, snapshot, size, position, chunk))
    assert bench.of(do.StoreChunk) == []
    bench.wait(0.02)
    assert bench.snapshot_fetch().position == 0


def test_d11_a_snapshot_older_than_what_is_committed_is_fatal(follower: Bench) -> None:
    follower.answer_fetch(high_watermark=5)
    follower.answer_fetch(snapshot_id=OffsetAndEpoch(4, 3))
    assert len(follower.of(do.FailQuorum)) == 1


def test_d11_a_leader_that_parts_from_the_snapshot_itself_is_fatal() -> None:
    log = MemoryLog()
    log.start = OffsetAndEpoch(20, 3)
    log.flushed_offset = 20
    bench = Bench(log=log)
    bench.follow(2, epoch=4)
    bench.answer_fetch(diverging_epoch=OffsetAndEpoch(15, 2))
    assert len(bench.of(do.FailQuorum)) == 1, "there is nothing to cut, and asking again would go on for ever"


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(-1, 3), OffsetAndEpoch(9, -1)])
def test_d11_a_snapshot_that_cannot_be_is_not_fetched(follower: Bench, snapshot_id: OffsetAndEpoch) -> None:
    follower.answer_fetch(snapshot_id=snapshot_id)
    assert follower.effects == []


def test_d11_a_snapshot_that_is_not_whole_is_fetched_again_a_little_later() -> None:
    bench = Bench()
    bench.follow()
    request = bench.fetch()
    bench.reply(request, RaftFetchResponse(NONE, 1, 2, snapshot_id=OffsetAndEpoch(10, 1)))
    asked = bench.snapshot_fetch()
    bench.reply(asked, FetchSnapshotResponse(NONE, 1, 2, OffsetAndEpoch(10, 1), size=3, position=0, chunk=b"bad"))
    assert do.FinishSnapshot(OffsetAndEpoch(10, 1)) in bench.effects
    bench.step(on.SnapshotRefused(OffsetAndEpoch(10, 1)))
    assert not bench.sent(RaftFetchRequest), "not at once"
    bench.wait(Timings().fetch_timeout_s / 2)
    assert bench.fetch().offset == request.offset
    assert bench.raft.role == "Follower"
