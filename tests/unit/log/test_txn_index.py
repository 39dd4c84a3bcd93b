"""The aborted transactions of a segment."""

from __future__ import annotations

import pytest

from strandline.log.errors import CorruptLog
from strandline.log.txn_index import AbortedTxn, TxnIndex

from .conftest import LogDir


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


def test_half_an_entry_is_refused(index: TxnIndex, directory: LogDir) -> None:
    directory.replace("a.txnindex", bytes(35))
    with pytest.raises(CorruptLog):
        list(TxnIndex(directory.disk, directory.file("a.txnindex")))
