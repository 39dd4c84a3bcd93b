"""The log: appending and rolling, reading from any offset, cutting at both ends, bringing it to the device."""

# mypy: disable-error-code="arg-type, unreachable"

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log import producer_snapshot
from strandline.log.log import Appended, Log
from strandline.log.producers import BatchMetadata
from strandline.log.segment import RELATIVE_OFFSET_MAX
from strandline.log.txn_index import AbortedTxn
from strandline.node.log_effects import perform
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, iterate
from strandline.sim.faults import Fault

from .conftest import ALL, NOW, LogDir, PoweredLogDir, batch, contents, marker, sized, values_in


def append(log: Log, *values: str, epoch: int = 0, now_ms: int = NOW, **fields: Any) -> Appended:
    return log.append_as_leader(batch(*values, **fields), epoch, now_ms)


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def placed(data: memoryview, base_offset: int, epoch: int = 0) -> memoryview:
    assign(data, base_offset, epoch)
    return data


# Appending


def test_offsets_are_given_out_without_a_gap(directory: LogDir) -> None:
    log = directory.open()
    assert append(log, "a", "b") == Appended(0, -1)
    assert append(log, "c") == Appended(2, -1)
    assert log.append_own(bytearray(batch("d")), 0, NOW) == 3
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def test_batches_carry_the_epoch_of_their_leader(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", epoch=3)
    append(log, "b", epoch=3)
    append(log, "c", epoch=5)
    headers = [header for _, header in iterate(log.read(0, ALL, 3, min_one=True))]
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(0, 3), (1, 3), (2, 5)]
    assert log.epochs.entries == [(3, 0), (5, 2)]


def test_a_duplicate_is_answered_with_its_first_offset_and_not_written(directory: LogDir) -> None:
    log = directory.open()
    append(log, "x")
    first = append(log, "a", "b", producer_id=9, producer_epoch=0, base_sequence=0)
    append(log, "c", producer_id=9, producer_epoch=0, base_sequence=2)
    assert append(log, "a", "b", producer_id=9, producer_epoch=0, base_sequence=0) == first == Appended(1, -1)
    assert log.log_end_offset == 4
    with pytest.raises(KafkaError) as error:
        append(log, "d", producer_id=9, producer_epoch=0, base_sequence=5)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 4


def test_a_duplicate_on_a_topic_with_append_time_gets_the_first_time(directory: LogDir) -> None:
    log = directory.open(log_append_time=True)
    fields = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    assert append(log, "a", now_ms=NOW, **fields) == append(log, "a", now_ms=NOW + 50, **fields) == Appended(0, NOW)


def test_a_follower_takes_offsets_and_epochs_as_they_are(directory: LogDir) -> None:
    log = directory.open()
    data = bytes(placed(batch("a", "b"), 0, 4)) + bytes(placed(batch("c"), 7, 6))
    log.append_as_follower(data + bytes(placed(batch("d"), 8, 6))[:-1], NOW)
    assert contents(log) == [(0, "a"), (1, "b"), (7, "c")]
    assert log.log_end_offset == 8
    assert log.epochs.entries == [(4, 0), (6, 7)]
    with pytest.raises(KafkaError) as error:
        log.append_as_follower(placed(batch("x"), 5, 6), NOW)
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_follower_and_leader_know_the_same_of_their_producers(directory: LogDir) -> None:
    leader = directory.open()
    follower = LogDir(directory.disk, directory.path + "-follower").open()
    for i in range(7):
        append(leader, "a", "b", producer_id=1, producer_epoch=0, base_sequence=2 * i)
        append(leader, "t", producer_id=2, producer_epoch=0, base_sequence=i, transactional=True)
    leader.append_own(marker(ControlRecordType.COMMIT, 2, 0), 0, NOW)
    append(leader, "u", producer_id=2, producer_epoch=0, base_sequence=7, transactional=True)
    follower.append_as_follower(leader.read(0, ALL, leader.log_end_offset, min_one=True), NOW)
    for producer_id in (1, 2):
        ours, theirs = leader.producers.by_id[producer_id], follower.producers.by_id[producer_id]
        assert list(ours.batches) == list(theirs.batches)
        assert producer_snapshot.encode(leader.producers) == producer_snapshot.encode(follower.producers)
    assert leader.producers.by_id[2].batches[-1] == BatchMetadata(7, 22, 0, NOW)
    assert follower.producers.first_unstable_offset(23) == 22


def test_a_full_disk_leaves_no_half_batch(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "a")
    powered.node.disk.faults.set("/data", Fault.FULL, times=1)
    with pytest.raises(OSError) as error:
        append(log, "b")
    assert error.value.errno == errno.ENOSPC
    assert (log.log_end_offset, contents(log)) == (1, [(0, "a")])
    append(log, "c")
    assert contents(log) == [(0, "a"), (1, "c")]


def test_a_marker_whose_index_has_no_room_leaves_a_log_that_ends_where_its_segment_does(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "t", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    ending = marker(ControlRecordType.ABORT, 2, 0)
    powered.node.disk.faults.set("/data", Fault.FULL, after_bytes=len(ending))
    with pytest.raises(OSError):
        log.append_own(ending, 0, NOW)
    log.check_invariants()
    assert log.log_end_offset == 2


# Rolling


def test_a_segment_is_rolled_before_it_outgrows_its_size(directory: LogDir) -> None:
    log = directory.open(segment_bytes=300)
    for size in (100, 200, 100, 201, 300, 100):
        log.append_as_leader(sized(size), 0, NOW)
    assert [segment.size for segment in log.segments] == [300, 100, 201, 300, 100]
    assert bases(log) == [0, 2, 3, 4, 5]
    assert directory.names(".log")[1] == "00000000000000000002.log"


def test_a_segment_is_rolled_by_the_time_between_its_records(directory: LogDir) -> None:
    log = directory.open(segment_ms=1000)
    for timestamp in (NOW, NOW + 1000, NOW - 5000, NOW + 1001, NOW + 2001, NOW + 2002):
        append(log, "a", timestamps=(timestamp,), now_ms=NOW)
    assert bases(log) == [0, 3, 5]


def test_a_segment_whose_records_have_no_time_is_rolled_by_the_clock(directory: LogDir) -> None:
    log = directory.open(segment_ms=1000)
    for now_ms in (NOW, NOW + 1000, NOW + 1001, NOW + 1500):
        append(log, "a", timestamps=(-1,), now_ms=now_ms)
    assert bases(log) == [0, 2]


def test_jitter_rolls_earlier_and_is_the_same_after_a_restart(directory: LogDir) -> None:
    log = directory.open(segment_ms=10_000, segment_jitter_ms=5_000)
    again = LogDir(directory.disk, directory.path).open(segment_ms=10_000, segment_jitter_ms=5_000)
    assert 0 <= log._jitter_ms < 5_000
    assert log._jitter_ms == again._jitter_ms


def test_a_segment_is_rolled_when_an_index_is_full(directory: LogDir) -> None:
    log = directory.open(segment_index_bytes=36, index_interval_bytes=0)
    for _ in range(12):
        append(log, "a", timestamps=(NOW,))
    # One entry for each batch but the first: the offset index has room for four.
    assert bases(log) == [0, 5, 10]


@pytest.mark.parametrize("empty", [False, True])
def test_a_segment_is_rolled_when_an_offset_is_too_far_from_its_base(directory: LogDir, empty: bool) -> None:
    log = directory.open(index_interval_bytes=0)
    if not empty:
        log.append_as_follower(placed(batch("a"), 0), NOW)
        log.append_as_follower(placed(batch("b"), RELATIVE_OFFSET_MAX), NOW)
        assert bases(log) == [0]
    far = 3 * RELATIVE_OFFSET_MAX
    log.append_as_follower(placed(batch("c", "d"), far), NOW)
    log.append_as_follower(placed(batch("e"), far + 2), NOW)
    assert bases(log) == [0] * (not empty) + [far + 1 - RELATIVE_OFFSET_MAX, far + 2]
    assert contents(log)[-3:] == [(far, "c"), (far + 1, "d"), (far + 2, "e")]
    log.close_clean()
    assert contents(directory.open())[-3:] == [(far, "c"), (far + 1, "d"), (far + 2, "e")]


def test_a_roll_of_an_empty_segment_is_none(directory: LogDir) -> None:
    log = directory.open()
    assert log.roll(NOW) is log.segments.active
    append(log, "a")
    assert log.roll(NOW).base_offset == 1
    assert log.roll(NOW) is log.segments.active
    assert bases(log) == [0, 1]


def test_rolling_leaves_a_snapshot_of_the_producers(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll(NOW)
    expected = producer_snapshot.encode(log.producers)
    append(log, "b", producer_id=1, producer_epoch=0, base_sequence=1)
    assert log.needs_flush
    directory.flush(log)
    assert not log.needs_flush
    assert directory.bytes("00000000000000000001.snapshot") == expected


# Reading


def test_a_read_from_inside_a_batch_gives_the_whole_batch(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", "b", "c")
    append(log, "d", "e")
    assert values_in(log.read(1, ALL, 5, min_one=True)) == [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]
    assert values_in(log.read(4, ALL, 5, min_one=True)) == [(3, "d"), (4, "e")]


def test_a_read_at_the_end_gives_nothing_and_beyond_it_is_refused(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", "b")
    log.advance_start(1)
    assert log.read(2, ALL, 2, min_one=True) == b""
    for offset in (-1, 0, 3):
        with pytest.raises(KafkaError) as error:
            log.read(offset, ALL, 2, min_one=True)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_limit_ends_a_read_before_the_batch_that_holds_it(directory: LogDir) -> None:
    log = directory.open(index_interval_bytes=0)
    for _ in range(10):
        append(log, "a", "b", "c")
    for limit in range(31):
        found = values_in(log.read(0, ALL, limit, min_one=True))
        assert len(found) == limit // 3 * 3
    assert log.read(7, ALL, 8, min_one=True) == b""
    assert log.read(20, ALL, 10, min_one=True) == b""


def test_max_bytes_may_cut_the_last_batch_but_not_the_first(directory: LogDir) -> None:
    log = directory.open()
    for _ in range(3):
        log.append_as_leader(sized(100), 0, NOW)
    assert len(log.read(0, 250, 3, min_one=False)) == 250
    assert len(log.read(0, 100, 3, min_one=False)) == 100
    assert log.read(0, 99, 3, min_one=False) == b""
    assert len(log.read(0, 99, 3, min_one=True)) == 100
    assert len(log.read(1, 0, 3, min_one=True)) == 100
    assert len(log.read(0, ALL, 2, min_one=False)) == 200


def test_a_read_stays_within_a_segment_and_goes_on_in_the_next(directory: LogDir) -> None:
    log = directory.open(segment_bytes=250)
    for _ in range(7):
        log.append_as_leader(sized(100), 0, NOW)
    assert bases(log) == [0, 2, 4, 6]
    assert len(log.read(1, ALL, 7, min_one=True)) == 100
    assert len(log.read(2, ALL, 7, min_one=True)) == 200
    assert [offset for offset, _ in contents(log)] == list(range(7))


def test_offsets_that_compaction_took_lead_to_the_next_record(directory: LogDir) -> None:
    log = directory.open(segment_bytes=250)
    for base_offset in (0, 5, 20, 21, 60):
        log.append_as_follower(placed(sized(100), base_offset), NOW)
    assert bases(log) == [0, 6, 22]
    for offset, found in ((0, 0), (1, 5), (5, 5), (6, 20), (19, 20), (22, 60), (59, 60)):
        assert values_in(log.read(offset, ALL, 61, min_one=True))[0][0] == found
    assert log.read(22, ALL, 50, min_one=True) == b""
    assert log.read(6, ALL, 20, min_one=True) == b""


def test_txn_p11_aborted_transactions_are_told_to_those_who_read_over_them(directory: LogDir) -> None:
    log = directory.open()
    for producer_id in (1, 2):
        append(log, "a", "b", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_own(marker(ControlRecordType.ABORT, 1, 0), 0, NOW)  # at 4
    log.roll(NOW)
    log.append_own(marker(ControlRecordType.ABORT, 2, 0), 0, NOW)  # at 5
    append(log, "c", producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)
    log.append_own(marker(ControlRecordType.COMMIT, 1, 0), 0, NOW)
    first, second = AbortedTxn(1, 0, 4, 2), AbortedTxn(2, 2, 5, 6)
    assert log.aborted_between(0, 8) == [first, second]
    assert log.aborted_between(0, 2) == [first]
    assert log.aborted_between(5, 8) == [second]
    assert log.aborted_between(6, 8) == []


# Cutting


@pytest.mark.parametrize("cut", range(13))
def test_truncation_leaves_what_was_there_before(directory: LogDir, cut: int) -> None:
    log = directory.open(segment_bytes=160)
    for i in range(6):
        append(log, f"a{i}", f"b{i}", epoch=i // 2, producer_id=1, producer_epoch=0, base_sequence=2 * i)
    before = contents(log)
    log.truncate_to(cut)
    end = cut // 2 * 2
    assert (log.log_end_offset, contents(log)) == (end, before[:end])
    assert log.epochs.entries == [(epoch, 4 * epoch) for epoch in range(3) if 4 * epoch < end]
    producer = log.producers.by_id.get(1)
    assert (producer.last_sequence if producer else -1) == end - 1
    assert append(log, "x", epoch=7, producer_id=1, producer_epoch=0, base_sequence=end).base_offset == end
    log.close_clean()
    assert contents(directory.open(segment_bytes=160)) == [*before[:end], (end, "x")]


def test_a12_a_leader_that_wrote_nothing_forgets_its_epoch_when_it_is_cut_at_the_log_end(directory: LogDir) -> None:
    """The next leader never saw epoch 5 and goes on with records of epoch 4: they must not seem to come from the past."""
    log = directory.open()
    append(log, "a", "b", epoch=4)
    log.epochs.assign(5, 2)
    assert log.epochs.latest == 5
    log.truncate_to(2)
    assert (log.log_end_offset, log.epochs.entries) == (2, [(4, 0)])
    assert log.append_fetched(placed(batch("c"), 2, 4), 6, NOW).problem is None
    assert log.epochs.entries == [(4, 0)]


def test_truncation_below_the_log_start_begins_anew_there(directory: LogDir) -> None:
    log = directory.open(segment_bytes=160)
    for _ in range(6):
        append(log, "a", "b")
    log.drop_segments(2, NOW)
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (1, 1, 1)
    assert directory.names(".log") == ["00000000000000000001.log"]
    assert (log.epochs.entries, log.producers.by_id) == ([], {})
    assert append(log, "x").base_offset == 1


def test_a_follower_may_begin_anew_far_ahead(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll(NOW)
    directory.flush(log)
    log.truncate_fully_and_start_at(500)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert directory.names(".snapshot") == []
    log.append_as_follower(placed(batch("x"), 500), NOW)
    log.close_clean()
    assert contents(directory.open()) == [(500, "x")]


def test_the_log_start_only_moves_forward(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", "b", "c", epoch=1)
    append(log, "d", epoch=2)
    log.advance_start(2)
    log.advance_start(1)
    assert log.log_start_offset == 2
    assert contents(log) == [(2, "c"), (3, "d")]
    assert log.epochs.entries == [(1, 2), (2, 3)]


def test_truncation_below_the_recovery_point_lowers_it(directory: LogDir) -> None:
    log = directory.open()
    append(log, "a", "b")
    append(log, "c")
    directory.flush(log)
    assert log.recovery_point == 3
    log.truncate_to(2)
    assert log.recovery_point == 2


# Durability


def test_a_flush_covers_what_was_there_when_it_began(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "a")

    async def story() -> None:
        flushing = asyncio.create_task(perform(log.flush()))
        await asyncio.sleep(0)
        append(log, "b")
        await flushing
        assert log.recovery_point == 1
        await perform(log.flush())
        assert log.recovery_point == 2

    powered.world.run(story())


def test_a_truncation_during_a_flush_leaves_the_recovery_point_below(powered: PoweredLogDir) -> None:
    log = powered.open()
    for value in "abc":
        append(log, value)

    async def story() -> None:
        flushing = asyncio.create_task(perform(log.flush()))
        await asyncio.sleep(0)
        log.truncate_to(1)
        append(log, "x", "y", "z")
        await flushing
        assert log.recovery_point == 0

    powered.world.run(story())


@pytest.mark.parametrize("change", ["truncate", "truncate fully", "retention", "close"])
def test_segments_may_leave_while_a_flush_is_under_way(powered: PoweredLogDir, change: str) -> None:
    log = powered.open(segment_bytes=100)
    for _ in range(4):
        append(log, "a", "b")

    async def story() -> None:
        flushing = asyncio.create_task(perform(log.flush()))
        await asyncio.sleep(0)
        match change:
            case "truncate":
                log.truncate_to(0)
            case "truncate fully":
                log.truncate_fully_and_start_at(50)
            case "retention":
                log.drop_segments(4, NOW)
            case "close":
                log.close()
        await flushing

    powered.world.run(story())
    assert not powered.node.disk._files or change != "close"
    expected = {"truncate": ["0"], "truncate fully": ["50"], "retention": ["8"], "close": ["0", "2", "4", "6"]}[change]
    for suffix in (".log", ".index", ".timeindex"):
        assert powered.names(suffix) == [f"{int(base):020d}{suffix}" for base in expected]


def test_a_snapshot_of_what_was_cut_during_its_flush_does_not_stay(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "a", producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, "b", producer_id=1, producer_epoch=0, base_sequence=1)
    log.roll(NOW)

    async def story() -> None:
        flushing = asyncio.create_task(perform(log.flush()))
        await asyncio.sleep(0)
        log.truncate_to(0)
        for value in "xyz":
            append(log, value)
        await flushing
        log.truncate_to(2)

    powered.world.run(story())
    assert log.producers.by_id == {}
    assert powered.names(".snapshot") == []


def test_a_failed_sync_is_told_and_the_recovery_point_stays(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "a")
    powered.node.disk.faults.set("/data/t-0/00000000000000000000.log", Fault.SYNC_ERROR, times=1)
    with pytest.raises(OSError):
        powered.flush(log)
    assert log.recovery_point == 0


def test_an_untouched_log_is_closed_without_a_write(powered: PoweredLogDir) -> None:
    log = powered.open()
    append(log, "a")
    log.close_clean()
    log = powered.open()
    powered.node.disk.faults.set("/data", Fault.WRITE_ERROR)
    powered.node.disk.faults.set("/data", Fault.SYNC_ERROR)
    log.close_clean()
    log = powered.open()
    powered.node.disk.faults.clear()
    append(log, "b")
    log.close_clean()
    assert contents(powered.open()) == [(0, "a"), (1, "b")]


def test_a_file_that_belongs_to_the_log_is_synced_with_it() -> None:
    for seed in range(10):
        powered = PoweredLogDir(seed)
        log = powered.open()
        append(log, "a")
        log.close_clean()
        log = powered.open()
        file = powered.disk.open(powered.file("partition.metadata"), create=True)
        file.append(b"version: 0")
        log.sync_with_names(file)
        append(log, "b")
        powered.flush(log)
        powered.power_loss()
        assert powered.bytes("partition.metadata") == b"version: 0"
        powered.world.close()


def test_the_size_of_a_log_and_of_what_follows_an_offset(directory: LogDir) -> None:
    log = directory.open(segment_bytes=200)
    for _ in range(6):
        log.append_as_leader(sized(100), 0, NOW)
    assert log.size == 600
    assert [log.bytes_after(offset) for offset in (0, 2, 3, 5)] == [600, 400, 400, 200]


def test_sec_l5_an_abort_for_whose_index_no_descriptor_is_left_counts(powered: PoweredLogDir) -> None:
    """Its log dir stays online: log and index must not part for good."""
    log = powered.open()
    log.append_as_leader(batch("a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 0, NOW)
    powered.node.disk.faults.set(log.segments.active.txn_index.path, Fault.NO_HANDLES)
    assert log.append_marker((5, 1), False, 0, 0, NOW, transaction_version=2) == 1
    assert log.has_aborted_since(0)
    assert log.aborted_between(0, 2) == [AbortedTxn(5, 0, 1, 2)]
    log.append_as_leader(batch("b"), 0, NOW)
    log.roll(NOW)
    log.append_as_leader(batch("c"), 0, NOW)
    for _ in range(2):
        with pytest.raises(OSError, match="txnindex"):
            powered.flush(log)
        assert log.recovery_point == 0
    powered.node.disk.faults.clear()
    powered.flush(log)
    powered.power_loss()
    log = powered.recover(recovery_point=4, high_watermark=4).log
    assert log.aborted_between(0, 4) == [AbortedTxn(5, 0, 1, 2)]


def test_a_cut_takes_an_abort_out_of_the_index(powered: PoweredLogDir) -> None:
    log = powered.open()
    transaction = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log.append_as_leader(batch("a", **transaction), 0, NOW)
    log.append_own(marker(ControlRecordType.ABORT, 5, 0), 0, NOW)
    log.truncate_to(1)
    log.append_own(marker(ControlRecordType.COMMIT, 5, 0), 1, NOW)
    assert log.aborted_between(0, 2) == []


def test_txn_p11_the_search_goes_on_until_nothing_older_was_open(powered: PoweredLogDir) -> None:
    log = powered.open()
    transaction = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log.append_as_leader(batch("a", producer_id=1, **transaction), 0, NOW)  # 0, open for long
    for _ in range(3):
        log.append_as_leader(batch("p"), 0, NOW)  # 1-3
    log.append_as_leader(batch("b", producer_id=2, **transaction), 0, NOW)  # 4
    log.append_own(marker(ControlRecordType.ABORT, 2, 0), 0, NOW)  # 5
    log.roll(NOW)
    log.append_own(marker(ControlRecordType.ABORT, 1, 0), 0, NOW)  # 6
    assert log.aborted_between(0, 2) == [AbortedTxn(1, 0, 6, 7)]


def test_sec_l10_a_leader_opens_no_more_transactions_than_it_may_remember(powered: PoweredLogDir) -> None:
    log = powered.open()
    log.producers.ids_max = 10

    def send(producer_id: int, sequence: int = 0) -> None:
        transaction = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        log.append_as_leader(batch("a", **transaction, transactional=True), 0, NOW)

    for producer_id in range(9):
        send(producer_id)
    with pytest.raises(KafkaError) as refused:
        send(9)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert log.log_end_offset == 9
    send(0, 1)
    log.append_marker((3, 0), True, 0, 0, NOW, transaction_version=0)
    send(9)
