"""Loading a log: what a clean start trusts, what an unclean one looks at again, and where it cuts (rule A18: torn writes, rot)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.log import checkpoints, producer_snapshot
from strandline.log.errors import CorruptLog
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after
from strandline.log.txn_index import AbortedTxn
from strandline.node.log_effects import perform
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, iterate, read_header

from .conftest import NOW, LogDir, PoweredLogDir, batch, contents, marker, sized

FIRST = "00000000000000000000"


@pytest.fixture
def directory(powered: PoweredLogDir) -> LogDir:
    """In memory: hundreds of starts, each of which syncs."""
    return powered


def filled(directory: LogDir, count: int = 9, **fields: Any) -> Log:
    """Segments of three batches of two records each, written by one producer in an epoch for each segment."""
    log = directory.open(**{"segment_bytes": 260, "index_interval_bytes": 60, **fields})
    for i in range(count):
        data = batch(
            f"a{i}", f"b{i}", timestamps=(NOW + i, NOW + i), producer_id=1, producer_epoch=0, base_sequence=2 * i
        )
        log.append_as_leader(data, i // 3, NOW)
    return log


def state(log: Log) -> tuple[object, ...]:
    """All that must be the same whichever way a log was loaded."""
    return (
        contents(log),
        log.log_start_offset,
        log.log_end_offset,
        log.epochs.entries,
        producer_snapshot.encode(log.producers),
        [(s.base_offset, s.next_offset, s.size, s.max_timestamp, s.offset_of_max_timestamp) for s in log.segments],
        [[s.offset_index.get(i) for i in range(s.offset_index.count)] for s in log.segments[:-1]],
        [[s.time_index.get(i) for i in range(s.time_index.count)] for s in log.segments[:-1]],
        [list(s.txn_index) for s in log.segments],
    )


def test_an_empty_directory_is_an_empty_log(directory: LogDir) -> None:
    for clean in (True, False):
        recovered = directory.recover(clean=clean)
        assert (recovered.log.log_start_offset, recovered.log.log_end_offset) == (0, 0)
        assert recovered[1:] == (0, 0, 0, (), False, 0)
        assert directory.names("") == [f"{FIRST}.index", f"{FIRST}.log", f"{FIRST}.timeindex"]
        recovered.log.close()


def test_an_empty_directory_may_begin_further_on(directory: LogDir) -> None:
    log = directory.open(start=77)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (77, 77, 77)


def test_a_clean_start_looks_at_no_batch_again(directory: LogDir) -> None:
    log = filled(directory)
    log.close_clean()
    before = state(filled(LogDir(directory.disk, directory.path + "2")))
    recovered = directory.recover(clean=True, segment_bytes=260, index_interval_bytes=60)
    assert (recovered.scanned_bytes, recovered.rebuilt_indexes, recovered.truncated_bytes) == (0, 0, 0)
    assert state(recovered.log) == before
    assert recovered.log.recovery_point == 18


def test_an_unclean_start_finds_all_that_was_written(directory: LogDir) -> None:
    log = filled(directory)
    before = state(log)
    log.close()
    recovered = directory.recover(segment_bytes=260, index_interval_bytes=60)
    assert recovered.scanned_bytes == sum(segment.size for segment in recovered.log.segments)
    assert recovered.truncated_bytes == 0
    assert state(recovered.log) == before
    assert directory.bytes(checkpoints.LEADER_EPOCH_CHECKPOINT) == b"0\n3\n0 0\n1 6\n2 12\n"


@pytest.mark.parametrize(("recovery_point", "scanned"), [(0, 3), (5, 3), (6, 3), (7, 2), (12, 2), (13, 1), (18, 1)])
def test_an_unclean_start_looks_only_beyond_the_recovery_point(
    directory: LogDir, recovery_point: int, scanned: int
) -> None:
    log = filled(directory)
    log.close_clean()
    sizes = [segment.size for segment in log.segments]
    recovered = directory.recover(recovery_point=recovery_point, segment_bytes=260)
    assert recovered.scanned_bytes == sum(sizes[-scanned:])


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_goes_on_where_the_log_ended(directory: LogDir, clean: bool) -> None:
    log = filled(directory)
    log.close_clean() if clean else log.close()
    log = directory.recover(clean=clean, segment_bytes=260, index_interval_bytes=60).log
    for i in range(9, 15):
        again = batch(f"a{i}", f"b{i}", producer_id=1, producer_epoch=0, base_sequence=2 * i)
        assert log.append_as_leader(again, 3, NOW).base_offset == 2 * i
    repeated = batch("a14", "b14", producer_id=1, producer_epoch=0, base_sequence=28)
    assert log.append_as_leader(repeated, 3, NOW).base_offset == 28
    assert [offset for offset, _ in contents(log)] == list(range(30))
    assert len(log.segments) == 5


# Torn and rotten batches


def small(directory: LogDir) -> tuple[list[int], bytes]:
    """Three batches; where each ends, and the file."""
    log = directory.open()
    ends = []
    for values in (("a",), ("b", "c"), ("d",)):
        log.append_as_leader(batch(*values), 0, NOW)
        ends.append(log.size)
    log.close()
    return ends, directory.bytes(f"{FIRST}.log")


@pytest.mark.parametrize("rest", ["nothing", "zeros", "ones"])
def test_a_batch_torn_at_any_byte_is_cut_as_a_whole(directory: LogDir, rest: str) -> None:
    ends, whole = small(directory)
    for size in range(ends[1], ends[2]):
        tail = {"nothing": b"", "zeros": bytes(len(whole) - size), "ones": b"\xff" * (len(whole) - size)}[rest]
        if whole[:size] + tail == whole:
            continue
        directory.replace(f"{FIRST}.log", whole[:size] + tail)
        recovered = directory.recover()
        assert contents(recovered.log) == [(0, "a"), (1, "b"), (2, "c")]
        assert recovered.truncated_bytes == size + len(tail) - ends[1]
        assert directory.bytes(f"{FIRST}.log") == whole[: ends[1]]
        recovered.log.close()


def test_any_flipped_bit_under_the_checksum_cuts_there(directory: LogDir) -> None:
    ends, whole = small(directory)
    for position in range(ends[0] + 16, ends[1]):
        rotten = bytearray(whole)
        rotten[position] ^= 1 << position % 8
        directory.replace(f"{FIRST}.log", bytes(rotten))
        recovered = directory.recover()
        assert contents(recovered.log) == [(0, "a")], position
        recovered.log.close()


def test_a_bad_batch_beyond_the_recovery_point_takes_all_later_segments_along(directory: LogDir) -> None:
    log = filled(directory, 12)
    log.close_clean()
    name = "00000000000000000006.log"
    rotten = bytearray(directory.bytes(name))
    rotten[-3] ^= 4
    directory.replace(name, bytes(rotten))
    recovered = directory.recover(recovery_point=6, segment_bytes=260, index_interval_bytes=60)
    assert recovered.log.log_end_offset == 10
    assert [offset for offset, _ in contents(recovered.log)] == list(range(10))
    assert recovered.truncated_bytes == log.segments[1].size // 3 + log.segments[2].size + log.segments[3].size
    assert directory.names(".log") == [f"{FIRST}.log", name]
    assert directory.names(".snapshot") == []
    assert recovered.log.epochs.entries == [(0, 0), (1, 6)]
    assert recovered.log.producers.by_id[1].last_sequence == 9
    again = batch("x", producer_id=1, producer_epoch=0, base_sequence=10)
    assert recovered.log.append_as_leader(again, 9, NOW).base_offset == 10


def test_batches_whose_offsets_do_not_rise_end_the_log(directory: LogDir) -> None:
    _, whole = small(directory)
    stale = bytearray(batch("old"))
    assign(stale, 2, 0)
    directory.replace(f"{FIRST}.log", whole + bytes(stale))
    assert directory.recover().log.log_end_offset == 4


def test_a_tail_lost_between_two_segments_ends_the_log(directory: LogDir) -> None:
    """The device wrote the younger segment before the older one was whole: nothing may be read over the hole."""
    log = filled(directory)
    log.close()
    whole = directory.bytes("00000000000000000006.log")
    directory.replace("00000000000000000006.log", whole[: len(whole) // 3])
    recovered = directory.recover(recovery_point=7, segment_bytes=260)
    assert [offset for offset, _ in contents(recovered.log)] == list(range(8))
    assert directory.names(".log")[-1] == "00000000000000000006.log"


@pytest.mark.parametrize("how", [{}, {"compact": True}, {"compact": True, "clean_offset": 11}])
def test_so_it_does_in_a_compacted_log(directory: LogDir, how: dict[str, Any]) -> None:
    """What is compacted is below the recovery point; above it only a lost tail leaves a gap."""
    log = filled(directory)
    log.close()
    whole = directory.bytes("00000000000000000006.log")
    directory.replace("00000000000000000006.log", whole[: len(whole) // 3])
    recovered = directory.recover(recovery_point=7, segment_bytes=260, **how)
    assert [offset for offset, _ in contents(recovered.log)] == list(range(8))


@pytest.mark.parametrize(
    "how",
    [
        {"clean": True},
        {"compact": True},
        {"recovery_point": 13},
        {"recovery_point": 13, "compact": True},
        {"recovery_point": 7, "compact": True, "clean_offset": 12},
    ],
    ids=["clean", "no recovery point", "below it", "below it and compacted", "compacted by Kafka above it"],
)
def test_a_gap_that_compaction_left_stays(directory: LogDir, how: dict[str, Any]) -> None:
    log = filled(directory)
    log.close_clean()
    whole = directory.bytes("00000000000000000006.log")
    directory.replace("00000000000000000006.log", whole[: len(whole) // 3])
    for suffix in (".index", ".timeindex"):
        directory.disk.remove(directory.file(f"00000000000000000006{suffix}"))
    recovered = directory.recover(segment_bytes=260, **how)
    assert [offset for offset, _ in contents(recovered.log)] == [*range(8), *range(12, 18)]


# Files beside the batches


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["gone", "empty", "odd", "beyond", "zeros"])
def test_a_bad_index_is_built_again(directory: LogDir, suffix: str, damage: str, clean: bool) -> None:
    log = filled(directory)
    before = state(log)
    log.close_clean()
    for base in (FIRST, "00000000000000000012"):
        name = base + suffix
        if damage == "gone":
            directory.disk.remove(directory.file(name))
        else:
            whole = directory.bytes(name)
            directory.replace(
                name,
                {"empty": b"", "odd": whole[:-1], "beyond": b"\x7f" * len(whole), "zeros": bytes(len(whole))}[damage],
            )
    recovered = directory.recover(clean=clean, recovery_point=18, segment_bytes=260, index_interval_bytes=60)
    assert contents(recovered.log) == before[0]
    for i in range(9):
        found = first_at_or_after(recovered.log, NOW + i)
        assert found is not None
        assert found.offset == 2 * i
    if damage in ("gone", "odd"):
        assert recovered.rebuilt_indexes == (2 if clean else 1)
        assert state(recovered.log) == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"garbage", b"0\n5\n0 0\n", b"0\n2\n3 0\n1 6\n", b"\0" * 64])
def test_lost_epochs_are_read_from_the_batches(directory: LogDir, content: bytes | None, clean: bool) -> None:
    log = filled(directory)
    log.close_clean()
    if content is None:
        directory.disk.remove(directory.file(checkpoints.LEADER_EPOCH_CHECKPOINT))
    else:
        directory.replace(checkpoints.LEADER_EPOCH_CHECKPOINT, content)
    recovered = directory.recover(clean=clean, recovery_point=18, segment_bytes=260)
    assert recovered.log.epochs.entries == [(0, 0), (1, 6), (2, 12)]
    assert directory.bytes(checkpoints.LEADER_EPOCH_CHECKPOINT) == b"0\n3\n0 0\n1 6\n2 12\n"


def test_an_epoch_that_began_without_a_record_is_forgotten(directory: LogDir) -> None:
    log = filled(directory)
    log.epochs.assign(8, log.log_end_offset)
    log.close_clean()
    assert directory.open(segment_bytes=260).epochs.latest == 2


@pytest.mark.parametrize("damage", ["gone", "short", "rotten"])
@pytest.mark.parametrize("clean", [True, False])
def test_lost_producer_state_is_read_from_the_batches(directory: LogDir, damage: str, clean: bool) -> None:
    log = filled(directory)
    directory.flush(log)
    before = producer_snapshot.encode(log.producers)
    log.close_clean()
    for name in directory.names(".snapshot"):
        if damage == "gone":
            directory.disk.remove(directory.file(name))
        else:
            whole = directory.bytes(name)
            directory.replace(name, whole[:-9] if damage == "short" else whole[:-9] + bytes(9))
    recovered = directory.recover(clean=clean, recovery_point=18, segment_bytes=260)
    assert producer_snapshot.encode(recovered.log.producers) == before
    assert directory.names(".snapshot") == []


def test_producers_whose_batches_are_gone_live_on_in_the_snapshot(directory: LogDir) -> None:
    log = filled(directory)
    log.append_as_leader(batch("q", producer_id=2, producer_epoch=0, base_sequence=0), 3, NOW)
    log.roll(NOW)
    directory.flush(log)
    log.drop_segments(len(log.segments) - 1, NOW)
    log.close()
    log = directory.recover(recovery_point=19, segment_bytes=260).log
    assert log.log_start_offset == 19
    assert {pid: producer.last_sequence for pid, producer in log.producers.by_id.items()} == {1: 17, 2: 0}


def test_a_snapshot_older_than_the_oldest_batch_is_not_believed(directory: LogDir) -> None:
    """A crash brought it back after its segment was deleted: it would take the producer's next batch for a gap."""
    log = directory.open()
    for sequence in range(2):
        log.append_as_leader(batch("a", producer_id=2, producer_epoch=0, base_sequence=sequence), 0, NOW)
        log.roll(NOW)
    log.append_as_leader(batch("x"), 0, NOW)
    directory.flush(log)
    stale = directory.bytes("00000000000000000001.snapshot")
    log.drop_segments(2, NOW)
    log.close()
    directory.disk.remove(directory.file("00000000000000000002.snapshot"))
    directory.replace("00000000000000000001.snapshot", stale)
    log = directory.recover(recovery_point=3).log
    assert log.producers.by_id == {}
    again = batch("b", producer_id=2, producer_epoch=0, base_sequence=2)
    assert log.append_as_leader(again, 0, NOW).base_offset == 3


def test_an_abort_is_known_though_its_transaction_began_before_the_recovery_point(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a", "b", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 0, NOW)
    log.roll(NOW)
    log.append_as_leader(batch("c"), 0, NOW)
    directory.flush(log)
    log.append_own(marker(ControlRecordType.ABORT, 5, 0), 0, NOW)
    log.close()
    log = directory.recover(recovery_point=3).log
    assert log.aborted_between(0, 4) == [AbortedTxn(5, 0, 3, 4)]


@pytest.mark.parametrize("clean", [False, True])
def test_txn_p31_an_end_above_the_high_watermark_is_not_stable_after_a_restart(directory: LogDir, clean: bool) -> None:
    """The snapshot that was taken when the segment was rolled has forgotten the transaction."""
    log = directory.open()
    log.append_as_leader(batch("a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 0, NOW)
    log.append_own(marker(ControlRecordType.COMMIT, 5, 0), 0, NOW)
    log.roll(NOW)
    log.append_as_leader(batch("b"), 0, NOW)
    directory.flush(log)
    log.close_clean() if clean else log.close()
    for high_watermark, stable in ((1, 0), (2, None), (3, None)):
        log = directory.recover(clean=clean, recovery_point=3, high_watermark=high_watermark).log
        assert log.producers.first_unstable_offset(high_watermark) == stable
        log.close_clean() if clean else log.close()


def test_txn_p31_a_cut_above_the_marker_leaves_the_end_unstable(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 0, NOW)
    log.append_own(marker(ControlRecordType.ABORT, 5, 0), 0, NOW)
    log.roll(NOW)
    log.append_as_leader(batch("b"), 0, NOW)
    log.append_as_leader(batch("c"), 0, NOW)
    directory.flush(log)
    log.truncate_to(3)
    assert log.producers.first_unstable_offset(1) == 0
    assert log.producers.first_unstable_offset(2) is None
    log.truncate_to(1)
    assert log.producers.first_unstable_offset(1) == 0, "it is open again"


def test_txn_p30_an_open_transaction_survives_a_restart(directory: LogDir) -> None:
    log = directory.open()
    for i, clean in enumerate((True, False, True)):
        txn = batch("a", producer_id=5, producer_epoch=0, base_sequence=i, transactional=True)
        log.append_as_leader(txn, 0, NOW)
        log.close_clean() if clean else log.close()
        log = directory.recover(clean=clean).log
        assert log.producers.first_unstable_offset(log.log_end_offset) == 0


def test_what_was_deleted_from_the_start_has_no_epoch_to_contradict(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a"), 3, NOW)
    log.advance_start(1)
    directory.flush(log)
    log.close()
    recovered = directory.recover(recovery_point=1, start=1)
    assert (recovered.truncated_bytes, recovered.log.log_end_offset) == (0, 1)


def test_leftovers_are_cleared_away(directory: LogDir) -> None:
    log = filled(directory)
    before = contents(log)
    log.close_clean()
    directory.disk.rename(directory.file("00000000000000000006.log"), directory.file("00000000000000000006.log.swap"))
    leftovers = [
        "00000000000000000099.log.deleted",
        "00000000000000000099.index.deleted",
        "00000000000000000006.log.cleaned",
        "00000000000000000099.index",
        "00000000000000000099.timeindex",
        "00000000000000000099.txnindex",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000099.snapshot",
    ]
    for name in leftovers:
        directory.replace(name, b"left over")
    log = directory.open(segment_bytes=260)
    assert contents(log) == before
    assert not set(leftovers) & set(directory.names(""))


def test_files_that_are_not_ours_are_passed_over(directory: LogDir) -> None:
    filled(directory).close_clean()
    for name in ("notes.log", "notes.snapshot", "1.log", "00000000000000000000.log.bak"):
        directory.replace(name, b"somebody's")
    assert directory.open(segment_bytes=260).log_end_offset == 18
    assert directory.bytes("notes.log") == b"somebody's"


def test_segments_that_overlap_are_refused(directory: LogDir) -> None:
    filled(directory).close_clean()
    directory.replace("00000000000000000003.log", directory.bytes("00000000000000000006.log"))
    with pytest.raises(CorruptLog, match="reaches into the next segment"):
        directory.open(segment_bytes=260)


def test_a_rotten_header_at_the_end_of_a_trusted_segment_is_noticed(directory: LogDir) -> None:
    ends, whole = small(directory)
    directory.recover().log.close_clean()
    rotten = bytearray(whole)
    rotten[ends[1] + 16] = 1
    directory.replace(f"{FIRST}.log", bytes(rotten))
    assert contents(directory.open()) == [(0, "a"), (1, "b"), (2, "c")]


# The log start


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("recovery_point", [0, 12, 13, 18])
def test_a_log_start_that_a_crash_moved_back_has_its_epochs_again(
    directory: LogDir, recovery_point: int, clean: bool
) -> None:
    """DeleteRecords, then a kill: the epochs were flushed, the checkpoint of the log start was not. Epoch 0 ends at 6."""
    log = filled(directory)
    log.advance_start(15)
    directory.flush(log)
    assert directory.bytes(checkpoints.LEADER_EPOCH_CHECKPOINT) == b"0\n1\n2 15\n"
    log.close_clean() if clean else log.close()
    log = directory.recover(clean=clean, recovery_point=recovery_point, segment_bytes=260).log
    assert len(contents(log)) == 18
    assert log.epochs.entries == [(0, 0), (1, 6), (2, 12)]
    assert log.epochs.end_offset_for(0, 18) == (0, 6)
    assert directory.bytes(checkpoints.LEADER_EPOCH_CHECKPOINT) == b"0\n3\n0 0\n1 6\n2 12\n"


def test_a_log_start_between_two_epochs_has_those_after_it(directory: LogDir) -> None:
    """The checkpoint of the log start is from an earlier deletion; what that took has no epoch any more."""
    log = filled(directory)
    log.advance_start(13)
    directory.flush(log)
    log.close()
    log = directory.recover(recovery_point=18, start=7, segment_bytes=260).log
    assert log.epochs.entries == [(1, 7), (2, 12)]


@pytest.mark.parametrize(("place", "epoch"), [(0, 2), (1, 2), (1, 9), (2, -1), (5, 0), (5, 7)])
def test_epochs_that_are_read_again_do_not_come_from_a_rotten_header(directory: LogDir, place: int, epoch: int) -> None:
    log = filled(directory)
    log.advance_start(15)
    directory.flush(log)
    log.close_clean()
    name = f"{6 * (place // 3):020}.log"
    data = bytearray(directory.bytes(name))
    positions = [position for position, _ in iterate(bytes(data))]
    header = read_header(bytes(data[positions[place % 3] :]))
    assign(memoryview(data)[positions[place % 3] :], header.base_offset, epoch)
    directory.replace(name, bytes(data))
    log = directory.recover(clean=True, recovery_point=18, segment_bytes=260).log
    assert log.epochs.entries == [(0, 0), (1, 6), (2, 12)]


def test_the_log_start_comes_back(directory: LogDir) -> None:
    log = filled(directory)
    log.advance_start(7)
    log.close_clean()
    log = directory.open(start=7, segment_bytes=260)
    assert [offset for offset, _ in contents(log)] == list(range(7, 18))
    assert log.epochs.entries == [(1, 7), (2, 12)]


def test_offsets_below_the_log_start_are_not_given_out_again(directory: LogDir) -> None:
    filled(directory).close()
    log = directory.recover(start=500, segment_bytes=260).log
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert directory.names(".log") == ["00000000000000000500.log"]
    assert log.append_as_leader(batch("x"), 5, NOW).base_offset == 500


# Power loss


def test_what_was_flushed_survives_and_what_follows_is_whole_or_gone() -> None:
    for seed in range(60):
        powered = PoweredLogDir(seed)
        log = powered.open(segment_bytes=700)
        for i in range(seed % 5):
            log.append_as_leader(sized(200 + i), 0, NOW)
        powered.flush(log)
        flushed = log.recovery_point
        for i in range(7):
            log.append_as_leader(sized(300 + i), 1, NOW)
        written = contents(log)
        powered.power_loss()
        log = powered.recover(recovery_point=flushed, segment_bytes=700).log
        assert log.log_end_offset >= flushed
        assert contents(log) == written[: log.log_end_offset], seed
        powered.world.close()


def test_what_was_cut_does_not_come_back_beside_what_took_its_place() -> None:
    for seed in range(60):
        powered = PoweredLogDir(seed)
        log = powered.open(segment_bytes=700)
        for _ in range(9):
            log.append_as_leader(sized(200, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset), 0, NOW)
        powered.flush(log)
        old = contents(log)
        log.truncate_to(2)
        for _ in range(9):
            log.append_as_leader(sized(210, producer_id=2, producer_epoch=0, base_sequence=log.log_end_offset), 1, NOW)
        new = contents(log)
        powered.power_loss()
        log = powered.recover(recovery_point=2, segment_bytes=700).log
        found = contents(log)
        assert found in (old[: len(found)], new[: len(found)])
        assert len(found) >= 2
        if found[:3] != old[:3]:
            assert log.producers.by_id[1].last_sequence == 1
        powered.world.close()


def test_a_flush_that_a_truncation_overtook_promises_nothing() -> None:
    for seed in range(30):
        powered = PoweredLogDir(seed)
        log = powered.open(segment_bytes=700)
        for _ in range(6):
            log.append_as_leader(sized(200), 0, NOW)
        powered.flush(log)
        for _ in range(3):
            log.append_as_leader(sized(200), 0, NOW)

        async def story(log: Log = log) -> None:
            flushing = asyncio.create_task(perform(log.flush()))
            await asyncio.sleep(0)
            log.truncate_to(4)
            for _ in range(5):
                log.append_as_leader(sized(210), 1, NOW)
            await flushing

        powered.world.run(story())
        assert log.recovery_point == 4
        kept = contents(log)[:4]
        powered.power_loss()
        log = powered.recover(recovery_point=4, segment_bytes=700).log
        assert contents(log)[:4] == kept
        powered.world.close()
