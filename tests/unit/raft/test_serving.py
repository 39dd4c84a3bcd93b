"""A leader at work: its first record, what it counts, whom it answers and when (D5-D7, D9-D12)."""

# mypy: disable-error-code="unreachable"

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.raft import control_records
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.messages import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    ReplicaKey,
)
from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, read_control_type
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key
from tests.unit.raft.memory_log import MemoryLog


@pytest.fixture
def leader() -> Bench:
    """Of epoch 1, with its first record at offset 0, on its own device only."""
    bench = Bench()
    bench.become_leader()
    return bench


def response_to(bench: Bench, node_id: int, offset: int | None = None, **fields: object) -> RaftFetchResponse:
    response = bench.fetched_by(node_id, offset, **fields)  # type: ignore[arg-type]
    assert isinstance(response, RaftFetchResponse)
    return response


def control_types(batch: bytes) -> list[ControlRecordType]:
    return [read_control_type(record.key) for record in decode(batch)]


# D6, D7, D9: the high watermark


def test_d6_a_new_leader_knows_no_high_watermark_and_appends_a_leader_change() -> None:
    bench = Bench()
    bench.follow(2)
    bench.answer_fetch(high_watermark=0)
    assert bench.raft.high_watermark == 0
    bench.lose_leader()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[3], bench.vote(True))
    bench.reply(bench.votes(pre_vote=False)[3], bench.vote(True))
    assert bench.raft.high_watermark is None
    assert control_types(bench.log.batches[0].data) == [ControlRecordType.LEADER_CHANGE]


def test_d6_the_first_leader_of_a_dynamic_quorum_writes_what_its_disk_was_formatted_with() -> None:
    bench = Bench(kraft_version=1)
    bench.become_leader()
    assert control_types(bench.log.batches[0].data) == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    (named,), version = bench.log.history()
    assert (named, version) == ((2, bench.raft.voters), 1)
    again = Bench(kraft_version=1, log=bench.log, state=bench.saved)
    again.wait(2.5)
    again.become_leader()
    assert control_types(again.log.batches[-1].data) == [ControlRecordType.LEADER_CHANGE]


def test_d7_a_majority_commits(leader: Bench) -> None:
    leader.write(2)
    leader.flush()
    assert leader.raft.high_watermark is None
    leader.fetched_by(2, 1)
    assert leader.of(do.HighWatermarkChanged) == [do.HighWatermarkChanged(1)]
    leader.fetched_by(3, 3)
    assert leader.raft.high_watermark == 3
    leader.fetched_by(3, 2)
    assert leader.raft.high_watermark == 3, "it never moves back"


def test_d7_nothing_of_an_older_epoch_is_committed_without_a_record_of_the_new_one() -> None:
    log = MemoryLog()
    log.append(1, [(b"", b"value")] * 3)
    log.flush(3)
    bench = Bench(log=log)
    bench.become_leader()
    bench.fetched_by(2, 3, last_fetched_epoch=1)
    assert bench.raft.high_watermark is None
    bench.fetched_by(2, 4, last_fetched_epoch=2)
    assert bench.raft.high_watermark == 4


def test_d9_the_leader_counts_its_own_log_when_it_is_on_the_device() -> None:
    bench = Bench([1])
    bench.step(on.LeaderAppended(1))
    assert do.Flush in bench.kinds()
    assert bench.raft.high_watermark is None
    bench.flush()
    assert bench.raft.high_watermark == 1
    bench.write()
    assert bench.raft.high_watermark == 1
    bench.flush()
    assert bench.raft.high_watermark == 2


def test_d9_an_end_that_is_not_on_the_device_any_more_does_not_count() -> None:
    """A flush may have been under way when the log was cut; its news comes late."""
    bench = Bench([1])
    bench.step(on.Flushed(99))
    assert bench.raft.high_watermark is None


def test_d12_observers_are_tracked_but_do_not_count(leader: Bench) -> None:
    for observer in (7, 8, 9):
        leader.fetched_by(observer)
    assert leader.raft.high_watermark is None
    leader.now += 1
    leader.fetched_by(9)
    described = leader.raft.describe(leader.now + 1)
    assert [(r.key, r.log_end_offset) for r in described.observers] == [(key(n), 1) for n in (7, 8, 9)]
    assert described.observers[2].last_fetch_at == leader.now
    assert [(r.key.id, r.log_end_offset) for r in described.voters] == [(1, 1), (2, -1), (3, -1)]


def test_d12_a_voter_with_another_directory_is_another_replica() -> None:
    bench = Bench(kraft_version=1)
    bench.become_leader()
    stranger = ReplicaKey(2, key(9).directory_id)
    bench.ask(RaftFetchRequest(stranger, 1, 3, 1, 0.0))
    assert bench.raft.high_watermark is None
    assert bench.raft.describe(bench.now).observers[0].key == stranger


# D10: divergence


@pytest.fixture
def long_log() -> Bench:
    """A leader of epoch 6 whose log has epochs 1 (0-2), 3 (3-5) and 6 (6)."""
    log = MemoryLog()
    log.append(1, [(b"", b"value")] * 3)
    log.append(3, [(b"", b"value")] * 3)
    log.flush(6)
    bench = Bench(log=log)
    bench.follow(2, epoch=5)
    bench.lose_leader()
    bench.wait_for("Prospective")
    bench.reply(bench.votes(pre_vote=True)[3], bench.vote(True))
    bench.reply(bench.votes(pre_vote=False)[3], bench.vote(True))
    bench.step(on.LeaderAppended(7))
    bench.flush()
    assert bench.raft.epoch == 6
    return bench


@pytest.mark.parametrize(
    ("offset", "epoch", "diverging"),
    [
        (0, 0, None),
        (3, 1, None),
        (2, 1, None),
        (6, 3, None),
        (7, 6, None),
        (4, 1, (3, 1)),
        (5, 2, (3, 1)),
        (7, 3, (6, 3)),
        (9, 5, (6, 3)),
        (8, 6, (7, 6)),
    ],
)
def test_d10_a_log_that_parts_from_the_leaders_is_told_where(
    long_log: Bench, offset: int, epoch: int, diverging: tuple[int, int] | None
) -> None:
    response = response_to(long_log, 2, offset, last_fetched_epoch=epoch)
    assert response.error is NONE
    assert response.diverging_epoch == (None if diverging is None else OffsetAndEpoch(*diverging))
    if diverging is not None:
        assert response.read_from is None
        assert long_log.raft.describe(0.0).voters[1].log_end_offset == -1, "what it has does not count"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"max_wait_s": -1.0}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 0, "last_fetched_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"epoch": 2**31 - 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_d10_an_impossible_fetch_is_refused(leader: Bench, fields: dict[str, object], error: ErrorCode) -> None:
    request = RaftFetchRequest(key(2), 1, 0, 1, 0.5)._replace(**fields)  # type: ignore[arg-type]
    response = leader.ask(request)
    assert isinstance(response, RaftFetchResponse)
    assert (response.error, response.epoch, response.leader_id) == (error, 1, 1)
    assert leader.raft.epoch == 1


def test_who_does_not_lead_says_who_does() -> None:
    bench = Bench()
    bench.follow(3, epoch=2)
    response = bench.ask(RaftFetchRequest(key(9), 2, 0, 0, 0.5))
    assert response == RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, 3, leader_address=address(3))


def test_whoever_is_no_replica_may_read_but_is_not_tracked(leader: Bench) -> None:
    response = leader.ask(RaftFetchRequest(ReplicaKey(-1), 1, 0, 0, 0.0))
    assert isinstance(response, RaftFetchResponse)
    assert response.read_from == 0
    assert leader.raft.describe(0.0).observers == ()


# Waiting


def test_a_fetch_waits_for_an_append(leader: Bench) -> None:
    assert leader.fetched_by(2, wait_s=0.5) is None
    leader.write()
    response = leader.answered()
    assert isinstance(response, RaftFetchResponse)
    assert (response.read_from, response.high_watermark) == (1, 1)


def test_a_fetch_waits_for_the_high_watermark(leader: Bench) -> None:
    assert leader.fetched_by(9, wait_s=0.5, high_watermark=-1) is None
    waiting = leader.answer
    leader.fetched_by(2)
    (answer,) = [e for e in leader.of(do.SendResponse) if e.answer is waiting]
    assert isinstance(answer.response, RaftFetchResponse)
    assert (answer.response.read_from, answer.response.high_watermark) == (None, 1)


def test_a_fetch_is_answered_at_once_if_the_replica_knows_an_older_high_watermark(leader: Bench) -> None:
    leader.fetched_by(2)
    assert response_to(leader, 3, wait_s=0.5, high_watermark=0).high_watermark == 1
    assert leader.fetched_by(3, wait_s=0.5, high_watermark=1) is None


def test_a_fetch_waits_no_longer_than_it_wants(leader: Bench) -> None:
    leader.fetched_by(2)
    assert leader.fetched_by(3, wait_s=0.5) is None
    leader.wait(0.49)
    assert leader.answered() is None
    leader.wait(0.02)
    assert isinstance(leader.answered(), RaftFetchResponse)


def test_a_fetch_is_answered_when_the_leader_is_none_any_more(leader: Bench) -> None:
    assert leader.fetched_by(3, wait_s=0.5) is None
    waiting = leader.answer
    leader.ask(BeginQuorumEpochRequest(key(1), 4, 3, {"CONTROLLER": address(3)}))
    assert leader.raft.is_leader, "anybody can say that"
    leader.confirm(3, RaftFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 4, 3))
    (answer,) = [e for e in leader.of(do.SendResponse) if e.answer is waiting]
    assert answer.response == RaftFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, 3, leader_address=address(3))
    assert leader.kinds().index(do.Save) < leader.effects.index(answer)


def test_nobody_is_answered_who_is_gone(leader: Bench) -> None:
    assert leader.fetched_by(3, wait_s=0.5) is None
    leader.step(on.Cancelled(leader.answer))
    leader.write()
    assert leader.answered() is None


# D5: check quorum


def test_d5_a_leader_that_a_majority_does_not_fetch_from_resigns(leader: Bench) -> None:
    leader.wait(2.9)
    assert leader.raft.is_leader
    leader.fetched_by(3)
    leader.wait(2.9)
    assert leader.raft.is_leader
    leader.wait(0.2)
    assert leader.raft.role == "Resigned"
    assert leader.of(do.LeaderChanged) == [do.LeaderChanged(1, -1)]


def test_d5_observers_and_strangers_do_not_keep_a_leader(leader: Bench) -> None:
    for _ in range(4):
        leader.wait(0.8)
        if leader.raft.is_leader:
            leader.fetched_by(9)
    assert leader.raft.role == "Resigned"


def test_d5_with_five_voters_two_others_are_needed() -> None:
    bench = Bench(range(1, 6))
    bench.wait_for("Prospective")
    for pre_vote in (True, False):
        for node_id in (2, 3):
            bench.reply(bench.votes(pre_vote=pre_vote)[node_id], bench.vote(True))
    assert bench.raft.is_leader
    for _ in range(4):
        bench.wait(0.8)
        if bench.raft.is_leader:
            bench.fetched_by(2, 0)
    assert bench.raft.role == "Resigned"


def test_the_only_voter_needs_nobody() -> None:
    bench = Bench([1])
    bench.wait(100)
    assert bench.raft.is_leader
    assert not bench.has_deadline


def test_d5_fetching_a_snapshot_counts_too() -> None:
    bench = _leader_with_snapshot()
    for _ in range(4):
        bench.wait(0.9)
        bench.ask(FetchSnapshotRequest(key(2), bench.raft.epoch, bench.log.start, 0, 64))
    assert bench.raft.is_leader


# D15: BeginQuorumEpoch


def test_d15_a_new_leader_tells_each_voter_until_it_has_heard_of_it(leader: Bench) -> None:
    told = {request.voter.id: request for request in leader.sent(BeginQuorumEpochRequest)}
    assert set(told) == {2, 3}
    leader.lose(told[2])
    leader.reply(told[3], QuorumEpochResponse(NONE, 1, 1))
    leader.wait(0.02)
    (again,) = leader.sent(BeginQuorumEpochRequest)
    assert again.voter.id == 2


def test_d15_and_again_if_it_does_not_fetch(leader: Bench) -> None:
    for request in leader.sent(BeginQuorumEpochRequest):
        leader.reply(request, QuorumEpochResponse(NONE, 1, 1))
    leader.fetched_by(2)
    leader.wait(0.99)
    assert leader.sent(BeginQuorumEpochRequest) == []
    leader.fetched_by(2)
    leader.wait(0.02)
    assert [request.voter.id for request in leader.sent(BeginQuorumEpochRequest)] == [3]


def test_a_leader_that_hears_of_a_newer_epoch_follows(leader: Bench) -> None:
    request = leader.sent(BeginQuorumEpochRequest)[0]
    leader.reply(request, QuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, 3, 2, address(2)))
    assert (leader.raft.role, leader.raft.epoch, leader.raft.leader_id) == ("Follower", 3, 2)


# D11: snapshots


def _leader_with_snapshot() -> Bench:
    log = MemoryLog()
    log.append(1, [(b"", b"value")] * 3)
    log.append(2, [(b"", b"value")] * 3)
    log.flush(6)
    log.take_snapshot(6)
    bench = Bench(log=log)
    bench.become_leader()
    return bench


def test_d11_who_is_behind_the_log_start_is_told_to_fetch_the_snapshot() -> None:
    bench = _leader_with_snapshot()
    for offset, epoch in [(0, 0), (3, 1), (5, 2), (6, 1)]:
        response = response_to(bench, 2, offset, last_fetched_epoch=epoch)
        assert (response.snapshot_id, response.read_from) == (OffsetAndEpoch(6, 2), None), (offset, epoch)
    assert response_to(bench, 2, 6, last_fetched_epoch=2).read_from == 6


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, NONE),
        ({"position": 5}, NONE),
        ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"position": 10_000}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"snapshot_id": OffsetAndEpoch(6, 1)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": OffsetAndEpoch(0, 0)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": OffsetAndEpoch(-1, -1)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"max_bytes": 0}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": -5}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2**31 - 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_d11_fetch_snapshot(fields: dict[str, object], error: ErrorCode) -> None:
    bench = _leader_with_snapshot()
    request = FetchSnapshotRequest(key(2), bench.raft.epoch, OffsetAndEpoch(6, 2), 0, 64)._replace(**fields)  # type: ignore[arg-type]
    response = bench.ask(request)
    assert isinstance(response, FetchSnapshotResponse)
    assert response.error is error
    if error is NONE:
        size = bench.log.snapshot_size(OffsetAndEpoch(6, 2))
        assert (response.snapshot_id, response.position, response.size) == ((6, 2), request.position, size)


def test_caught_up_looks_at_the_end_that_the_log_had(leader: Bench) -> None:
    """A15: what is appended between two Fetches does not count as lag."""
    leader.fetched_by(9)
    leader.write()
    first = leader.now
    leader.now += 1
    leader.fetched_by(9, 1)
    leader.write()
    second = leader.now
    leader.now += 1
    leader.fetched_by(9, 2)
    (observer,) = leader.raft.describe(leader.now).observers
    assert observer.last_caught_up_at == second
    assert first < second


def test_control_records_come_back_as_they_were_written() -> None:
    voters = Bench(kraft_version=1, start=False).raft.voters
    assert control_records.read_voters(control_records.voters_record(voters)[1]) == voters
    assert control_records.read_kraft_version(control_records.kraft_version_record(1)[1]) == 1
