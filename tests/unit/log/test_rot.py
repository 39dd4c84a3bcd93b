"""Bits that rot on the device, in any file of a log: noticed before anybody is served, and the log starts (rule A18)."""

# mypy: disable-error-code="arg-type, misc"

from __future__ import annotations

import random

import pytest

from strandline.errors import ErrorCode
from strandline.log import checkpoints, producer_snapshot
from strandline.log.errors import CorruptBatch
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after
from strandline.log.repairing import repair
from strandline.node.log_effects import perform
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, iterate
from strandline.sim.world import World

from .conftest import ALL, NOW, LogDir, PoweredLogDir, batch, contents, marker, values_in

FIRST, SECOND, THIRD = "00000000000000000000", "00000000000000000006", "00000000000000000012"
SMALL = {"segment_bytes": 260, "index_interval_bytes": 60}


@pytest.fixture
def directory(powered: PoweredLogDir) -> LogDir:
    return powered


def written(directory: LogDir) -> list[tuple[int, str]]:
    """Three segments of three batches of two records, in an epoch for each, stopped in order; what they hold."""
    log = directory.open(**SMALL)
    for i in range(9):
        data = batch(
            f"a{i}", f"b{i}", timestamps=(NOW + i, NOW + i), producer_id=1, producer_epoch=0, base_sequence=2 * i
        )
        log.append_as_leader(data, i // 3, NOW)
    expected = contents(log)
    log.close_clean()
    return expected


def flip(directory: LogDir, name: str, position: int, bit: int) -> bytes:
    """Rot one bit; the file as it was."""
    whole = directory.bytes(name)
    rotten = bytearray(whole)
    rotten[position] ^= 1 << bit
    directory.replace(name, bytes(rotten))
    return whole


def served(log: Log) -> dict[int, str]:
    """What a reader who asks for each offset in turn gets for it, where it gets anything."""
    found = {}
    for offset in range(log.log_start_offset, log.log_end_offset):
        damaged = None
        try:
            data = log.read(offset, ALL, log.log_end_offset, min_one=True)
        except CorruptBatch as error:
            damaged = error
        if damaged is None:
            records = dict(values_in(data))
            assert min(records) <= offset, f"{offset} was passed over"
            found[offset] = records[offset]
        else:
            assert damaged.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert damaged.first_offset <= offset < damaged.end_offset
    return found


@pytest.mark.parametrize("name", [f"{FIRST}.log", f"{SECOND}.log", f"{THIRD}.log"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_rotten_bit_anywhere_in_the_log_is_never_served(directory: LogDir, name: str, clean: bool) -> None:
    """What is on the device stays in the log and is refused until it is repaired; all the rest is served."""
    expected = dict(written(directory))
    randomness = random.Random(name + "x")
    size = len(directory.bytes(name)) // 3
    files = {file: directory.bytes(file) for file in directory.names("")}
    for position in range(3 * size):
        if position % size > 61 and position % 8:
            continue  # records are all alike
        bit = randomness.randrange(8)
        flip(directory, name, position, bit)
        recovered = directory.recover(clean=clean, recovery_point=18, **SMALL)
        log = recovered.log
        where = f"bit {bit} of byte {position}"
        # After a crash nothing tells where the log ended if its very last batch is gone: it is cut, and fetched again.
        end = 16 if not clean and name == f"{THIRD}.log" and position // size == 2 and recovered.truncated_bytes else 18
        assert (log.log_start_offset, log.log_end_offset) == (0, end), where
        assert recovered.truncated_bytes == (18 - end) * size // 2, where
        got = served(log)
        assert got == {offset: expected[offset] for offset in got}, where
        # Of a wrong offset it can't always be told whether it is this batch's or the next one's; of a wrong epoch at the bound
        # of two, whether it is the batch's or the checkpoint's.
        assert 14 <= len(got) < (19 if 12 <= position % size < 16 else 18), where
        log.close()
        for file in directory.names(""):
            directory.disk.remove(directory.file(file))
        for file, data in files.items():
            directory.replace(file, data)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_lost_nothing_wrong_is_served(seed: int) -> None:
    """Bits, blocks of zeros and of junk, in several places: before any start, or under an open log."""
    directory, randomness = PoweredLogDir(seed), random.Random(seed)
    try:
        expected = dict(written(directory))
        clean, is_open = randomness.random() < 0.5, randomness.random() < 0.5
        log = directory.recover(clean=True, recovery_point=18, **SMALL).log
        for _ in range(randomness.randrange(1, 5)):
            name = f"{randomness.choice([FIRST, SECOND, THIRD])}.log"
            before = directory.bytes(name)
            start = randomness.randrange(len(before))
            size = min(randomness.choice([1, 1, 4, 16, 64, 150]), len(before) - start)
            block = randomness.choice([bytes(size), randomness.randbytes(size)])
            for i, byte in enumerate(block):
                for bit in range(8):
                    if (before[start + i] ^ byte) >> bit & 1:
                        directory.node.disk.flip_bit(directory.file(name), start + i, bit)
        if not is_open:
            log.close()
            log = directory.recover(clean=clean, recovery_point=18, **SMALL).log
        assert log.log_end_offset == 18 or (not clean and 12 <= log.log_end_offset < 18)
        got = served(log)
        assert got == {offset: expected[offset] for offset in got}
    finally:
        directory.world.close()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_rotten_index_is_not_believed(directory: LogDir, suffix: str) -> None:
    expected = written(directory)
    times = [first_at_or_after(directory.open(**SMALL), NOW + i) for i in range(9)]
    randomness = random.Random(suffix)
    for name in (FIRST, SECOND, THIRD):
        for position in range(len(directory.bytes(name + suffix))):
            whole = flip(directory, name + suffix, position, randomness.randrange(8))
            log = directory.recover(clean=True, recovery_point=18, **SMALL).log
            assert contents(log) == expected, (name, position)
            assert len(served(log)) == 18
            assert [first_at_or_after(log, NOW + i) for i in range(9)] == times, (name, position)
            log.close()
            directory.replace(name + suffix, whole)


def test_rotten_leader_epochs_are_found_in_the_batches_again(directory: LogDir) -> None:
    written(directory)
    name = checkpoints.LEADER_EPOCH_CHECKPOINT
    for position in range(len(directory.bytes(name))):
        for bit in range(8):
            whole = flip(directory, name, position, bit)
            recovered = directory.recover(clean=True, recovery_point=18, **SMALL)
            assert recovered.log.epochs.entries == [(0, 0), (1, 6), (2, 12)], (position, bit)
            assert len(served(recovered.log)) == 18
            recovered.log.close()
            directory.replace(name, whole)


def test_a_rotten_producer_snapshot_is_made_again_from_the_batches(directory: LogDir) -> None:
    written(directory)
    name = directory.names(".snapshot")[-1]
    before = producer_snapshot.encode(directory.open(**SMALL).producers)
    whole = directory.bytes(name)
    for position in range(len(whole)):
        flip(directory, name, position, position % 8)
        log = directory.recover(clean=True, recovery_point=18, **SMALL).log
        assert producer_snapshot.encode(log.producers) == before, position
        log.close()
        directory.replace(name, whole)


@pytest.mark.parametrize("position", [1, 9, 15, 17, 20, 25])
def test_a_rotten_transaction_index_is_made_again(directory: LogDir, position: int) -> None:
    log = directory.open()
    fields = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log.append_as_leader(batch("a", producer_id=7, **fields), 0, NOW)
    log.append_as_leader(batch("b", producer_id=8, **fields), 0, NOW)
    log.append_own(marker(ControlRecordType.ABORT, 7, 0), 0, NOW)
    log.append_own(marker(ControlRecordType.COMMIT, 8, 0), 0, NOW)
    before = log.aborted_between(0, 4)
    assert before
    log.close_clean()
    flip(directory, f"{FIRST}.txnindex", position, 1)
    recovered = directory.recover(clean=True, recovery_point=4)
    assert recovered.rebuilt_indexes == 1
    assert recovered.log.aborted_between(0, 4) == before


def test_a18_an_unclean_restart_rebuilds_indexes_epochs_and_producers(directory: LogDir) -> None:
    expected = written(directory)
    log = directory.open(**SMALL)
    state = (
        list(log.epochs.entries),
        producer_snapshot.encode(log.producers),
        [[s.offset_index.get(i) for i in range(s.offset_index.count)] for s in log.segments],
        [[s.time_index.get(i) for i in range(s.time_index.count)] for s in log.segments],
    )
    log.close()
    for name in directory.names(""):
        if not name.endswith(".log"):
            directory.replace(name, b"\xff" * len(directory.bytes(name)))
    log = directory.recover(**SMALL).log
    assert contents(log) == expected
    log.segments.active.seal()
    assert state == (
        log.epochs.entries,
        producer_snapshot.encode(log.producers),
        [[s.offset_index.get(i) for i in range(s.offset_index.count)] for s in log.segments],
        [[s.time_index.get(i) for i in range(s.time_index.count)] for s in log.segments],
    )


def test_a18_only_what_lies_beyond_the_recovery_point_is_cut(directory: LogDir) -> None:
    """One rotten batch on either side of it: the first stays for a repair, the second was never written whole."""
    expected = dict(written(directory))
    size = len(directory.bytes(f"{SECOND}.log")) // 3
    flip(directory, f"{SECOND}.log", size + 70, 3)
    flip(directory, f"{THIRD}.log", size + 70, 3)
    recovered = directory.recover(recovery_point=12, **SMALL)
    log = recovered.log
    assert log.log_end_offset == 14
    assert recovered.truncated_bytes == 2 * size
    (damaged,) = recovered.damaged
    assert (damaged.first_offset, damaged.end_offset) == (8, 10)
    assert (damaged.segment_base_offset, damaged.position, damaged.end_position) == (6, size, 2 * size)
    assert served(log) == {offset: expected[offset] for offset in range(14) if offset not in (8, 9)}


def test_epochs_from_before_the_last_cut_do_not_come_back(directory: LogDir) -> None:
    """The checkpoint knows epoch 5, whose records were cut; those of epoch 4 took their place, and then the node crashed."""
    log = directory.open()
    log.append_as_leader(batch("a"), 3, NOW)
    log.append_as_leader(batch("b"), 5, NOW)
    log.close_clean()
    log = directory.open()
    log.truncate_to(1)
    data = batch("c")
    assign(data, 1, 4)
    assert log.append_fetched(data, 9, NOW).problem is None
    log.close()
    assert directory.bytes(checkpoints.LEADER_EPOCH_CHECKPOINT) == b"0\n2\n3 0\n5 1\n"
    log = directory.recover(recovery_point=2).log
    assert log.epochs.entries == [(3, 0), (4, 1)]
    assert [header.partition_leader_epoch for _, header in iterate(log.read(0, ALL, 2, min_one=True))] == [3, 4]


# Base offset and leader epoch, which no checksum covers


WRONG_OFFSETS = [-5, -2, -1, 1, 2, 5, 1 << 20, 1 << 40, -(1 << 62)]
WRONG_EPOCHS = [-3, -1, 1, 7, 1 << 20]


def repaired_by_a_peer(world: World, log: Log, damaged: list[CorruptBatch], peer: Log) -> int:
    """Have every damaged stretch repaired, as often as a reader meets one; how many it took."""
    for count in range(10):
        for offset in range(log.log_start_offset, log.log_end_offset):
            try:
                log.read(offset, ALL, log.log_end_offset, min_one=True)
            except CorruptBatch as error:
                damaged.append(error)
                break
        if not damaged:
            return count
        error = damaged.pop(0)
        data = bytes(peer.read(error.first_offset, ALL, peer.log_end_offset, min_one=True))
        world.run(perform(repair(log, error, data, NOW)))
    raise AssertionError(f"{damaged[-1]} is not repaired")


@pytest.mark.parametrize("is_end_known", [True, False])
@pytest.mark.parametrize(
    ("field", "wrong_by"), [("offset", by) for by in WRONG_OFFSETS] + [("epoch", by) for by in WRONG_EPOCHS]
)
def test_a_wrong_offset_or_epoch_at_a_clean_start_is_repaired_by_a_peer(
    powered: PoweredLogDir, field: str, wrong_by: int, is_end_known: bool
) -> None:
    """No record is cut, and nothing wrong is served; of a wrong epoch at the bound of two it can't be told whose fault it is."""
    directory = powered
    peer_directory = LogDir(directory.disk, directory.path + "-peer")
    expected = written(peer_directory)
    peer = peer_directory.open(**SMALL)
    epochs = list(peer.epochs.entries)
    for place in range(9):
        for file in peer_directory.names(""):
            directory.disk.mkdir(directory.path)
            directory.replace(file, peer_directory.bytes(file))
        name = f"{6 * (place // 3):020}.log"
        data = bytearray(directory.bytes(name))
        if (place, field, is_end_known) == (8, "offset", False) and wrong_by > 0:
            continue  # it may as well be the end of a log that was compacted once: nothing tells
        position, header = list(iterate(bytes(data)))[place % 3]
        offset = header.base_offset + (wrong_by if field == "offset" else 0)
        epoch = header.partition_leader_epoch + (wrong_by if field == "epoch" else 0)
        assign(memoryview(data)[position:], offset, epoch)
        directory.replace(name, bytes(data))
        recovered = directory.recover(clean=True, recovery_point=18 if is_end_known else 0, **SMALL)
        log, where = recovered.log, f"batch {place}"
        assert (recovered.truncated_bytes, log.log_end_offset) == (0, 18), where
        got = served(log)
        assert got == {at: value for at, value in expected if at in got}, where
        before, after = max(place - 1, 0) // 3, min(place + 1, 8) // 3
        is_plausible = field == "epoch" and before <= epoch <= after
        if not is_plausible:
            assert log.epochs.entries == epochs, where
            assert repaired_by_a_peer(powered.world, log, list(recovered.damaged), peer) >= 1, where
            assert contents(log) == expected, where
        log.close()
        for file in directory.names(""):
            directory.disk.remove(directory.file(file))
