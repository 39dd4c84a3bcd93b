"""The aborted transactions of a segment."""

from __future__ import annotations

import pytest

from strandline.log.errors import CorruptLog, NotCached
from strandline.log.txn_index import AbortedTxn, TxnIndex
from strandline.sim.faults import Fault
from strandline.sim.file import SimFile

from .conftest import LogDir, PoweredLogDir


@pytest.fixture
def index(directory: LogDir) -> TxnIndex:
    directory.disk.mkdir(directory.path)
    return TxnIndex(directory.disk, directory.file("a.txnindex"))


def test_there_is_no_file_before_the_first_abort(index: TxnIndex, directory: LogDir) -> None:
    assert list(index) == []
    index.truncate_to(0)
    index.begin()
    index.sync_blocking()
    assert directory.names(".txnindex") == []


def test_txn_p11_entries_are_kafkas_bytes_and_come_back(index: TxnIndex, directory: LogDir) -> None:
    aborted = AbortedTxn(1, 2, 3, 4)
    index.add(aborted)
    assert directory.bytes("a.txnindex") == bytes.fromhex(
        "0000" "0000000000000001" "0000000000000002" "0000000000000003" "0000000000000004"
    )  # fmt: skip
    index.close()
    assert list(TxnIndex(directory.disk, directory.file("a.txnindex"))) == [aborted]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_the_search_begins_where_the_first_one_ended_at_or_after_the_offset(index: TxnIndex, count: int) -> None:
    for number in range(count):
        index.add(AbortedTxn(1, 10 * number, 10 * number + 5, 10 * number + 6))
    for offset in range(10 * count + 10):
        expected = [aborted for aborted in index if aborted.last_offset >= offset]
        assert list(index.since(offset)) == expected
        assert index.ends_after(offset) is bool(expected)


def test_a_cut_forgets_what_was_aborted_after_it(index: TxnIndex) -> None:
    for last_offset in (10, 20, 30):
        index.add(AbortedTxn(1, last_offset - 5, last_offset, last_offset + 1))
    index.truncate_to(20)
    assert [aborted.last_offset for aborted in index] == [10]
    index.begin()
    assert list(index) == []


def test_half_an_entry_is_refused(directory: LogDir) -> None:
    directory.disk.mkdir(directory.path)
    directory.replace("a.txnindex", bytes(35))
    index = TxnIndex(directory.disk, directory.file("a.txnindex"))
    for use in (lambda: list(index), lambda: list(index.since(5)), lambda: index.truncate_to(5)):
        with pytest.raises(CorruptLog):
            use()


def test_sec_l5_without_a_descriptor_an_entry_waits_in_memory(powered: PoweredLogDir) -> None:
    """Its marker is in the log, and will not come a second time."""
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    entries = [AbortedTxn(1, 10 * number, 10 * number + 5, 10 * number + 6) for number in range(4)]
    for refused, aborted in zip((True, True, False, True), entries, strict=True):
        if refused:
            powered.node.disk.faults.set(index.path, Fault.NO_HANDLES)
        index.add(aborted)
        powered.node.disk.faults.clear()
        known = entries[: entries.index(aborted) + 1]
        assert list(index) == known
        assert list(index.since(6)) == known[1:]
        assert index.ends_after(aborted.last_offset)
        assert not index.ends_after(aborted.last_offset + 1)


@pytest.mark.parametrize("offset", [5, 15])
def test_a_cut_forgets_what_was_not_written_yet(powered: PoweredLogDir, offset: int) -> None:
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    powered.node.disk.faults.set(index.path, Fault.NO_HANDLES)
    index.add(AbortedTxn(1, 0, 5, 6))
    index.add(AbortedTxn(1, 10, 15, 16))
    index.truncate_to(offset)
    assert [aborted.last_offset for aborted in index] == [5, 15][: offset // 10]
    index.begin()
    assert list(index) == []


def test_sec_l5_an_index_is_not_synced_without_what_waits(powered: PoweredLogDir) -> None:
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    powered.node.disk.faults.set(index.path, Fault.NO_HANDLES)
    index.add(AbortedTxn(1, 0, 5, 6))
    with pytest.raises(OSError, match="txnindex"):
        index.sync_blocking()
    powered.node.disk.faults.clear()
    index.sync_blocking()
    assert list(TxnIndex(powered.disk, index.path)) == [AbortedTxn(1, 0, 5, 6)]


def test_a_write_that_fails_for_another_reason_is_told(powered: PoweredLogDir) -> None:
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    powered.node.disk.faults.set(index.path, Fault.FULL)
    with pytest.raises(OSError, match="txnindex"):
        index.add(AbortedTxn(1, 0, 5, 6))


def test_a_search_reads_no_more_than_it_needs(powered: PoweredLogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    for number in range(2000):
        index.add(AbortedTxn(1, 2 * number, 2 * number + 1, 2 * number + 2))
    read_bytes = 0
    read_blocking = SimFile.read_blocking

    def counted(file: SimFile, position: int, size: int) -> bytes:
        nonlocal read_bytes
        data = read_blocking(file, position, size)
        read_bytes += len(data)
        return data

    monkeypatch.setattr(SimFile, "read_blocking", counted)
    search = index.since(2000)
    assert [next(search).first_offset for _ in range(5)] == [2000, 2002, 2004, 2006, 2008]
    assert read_bytes < 8192
    assert len(list(index.since(0))) == 2000


def test_what_is_not_in_memory_is_asked_for_beside_the_event_loop(powered: PoweredLogDir) -> None:
    index = TxnIndex(powered.disk, powered.file("a.txnindex"))
    for number in range(1000):
        index.add(AbortedTxn(1, 2 * number, 2 * number + 1, 2 * number + 2))
    powered.node.disk.cold_probability = 1
    with pytest.raises(NotCached) as cold:
        index.ends_after(0, blocking=False)
    with pytest.raises(NotCached):
        list(index.since(500, blocking=False))
    cold.value.warm()
    powered.node.disk.cold_probability = 0
    assert next(index.since(500, blocking=False)).first_offset == 500
