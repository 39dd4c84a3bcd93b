"""What a walk along a log learns of transactions."""

from __future__ import annotations

from strandline.log.compaction.transactions import BatchStanding, CleanerTransactions
from strandline.log.txn_index import AbortedTxn
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, read_header

from ..conftest import marker
from .cleaning import puts

ABORTED = AbortedTxn(5, 10, 20, 21)


def data(
    transactions: CleanerTransactions, offset: int, producer_id: int = 5, *, transactional: bool = True
) -> BatchStanding:
    batch = puts({"a": "1"}, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=transactional)
    assign(batch, offset, 0)
    return transactions.note(bytes(batch), 0, read_header(batch))


def ended(
    transactions: CleanerTransactions, offset: int, kind: ControlRecordType, producer_id: int = 5
) -> BatchStanding:
    batch = marker(kind, producer_id, 0)
    assign(batch, offset, 0)
    return transactions.note(b"before" + bytes(batch), 6, read_header(batch))


def test_aborted_data_may_go_and_its_marker_tells_readers() -> None:
    transactions = CleanerTransactions([ABORTED], 0)
    assert data(transactions, 9) == BatchStanding(False)
    assert data(transactions, 10) == BatchStanding(True)
    assert data(transactions, 11, 6) == BatchStanding(False)
    assert data(transactions, 12, transactional=False) == BatchStanding(False)
    assert ended(transactions, 20, ControlRecordType.ABORT) == BatchStanding(False, ABORTED)
    assert data(transactions, 22) == BatchStanding(False)
    assert ended(transactions, 23, ControlRecordType.COMMIT) == BatchStanding(False)
    assert ended(transactions, 24, ControlRecordType.COMMIT, 6) == BatchStanding(False)


def test_a_marker_of_which_nothing_is_left_may_go() -> None:
    transactions = CleanerTransactions([ABORTED], 0)
    assert ended(transactions, 20, ControlRecordType.ABORT) == BatchStanding(True)
    assert ended(transactions, 21, ControlRecordType.COMMIT, 6) == BatchStanding(True)


def test_what_ended_before_the_walk_began_is_over() -> None:
    transactions = CleanerTransactions([ABORTED], 21)
    assert data(transactions, 30) == BatchStanding(False)
    transactions = CleanerTransactions([ABORTED], 20)
    assert ended(transactions, 20, ControlRecordType.ABORT) == BatchStanding(True)
    assert data(transactions, 30) == BatchStanding(False)


def test_an_abort_that_no_index_knows_keeps_its_marker() -> None:
    transactions = CleanerTransactions([], 0)
    assert data(transactions, 10) == BatchStanding(False)
    assert ended(transactions, 20, ControlRecordType.ABORT) == BatchStanding(False)


def test_other_control_batches_stay() -> None:
    assert ended(CleanerTransactions([], 0), 3, ControlRecordType.LEADER_CHANGE) == BatchStanding(False)


def test_an_abort_that_began_before_the_walk_is_known_in_it() -> None:
    """The segments before were cleaned already, or lost: what is met of the transaction is aborted all the same."""
    early, late = ABORTED, AbortedTxn(6, 17, 22, 23)
    transactions = CleanerTransactions([early, late], 15)
    assert data(transactions, 15) == BatchStanding(True)
    assert data(transactions, 16, 6) == BatchStanding(False)
    assert data(transactions, 18, 6) == BatchStanding(True)
    assert ended(transactions, 20, ControlRecordType.ABORT) == BatchStanding(False, early)
    assert ended(transactions, 22, ControlRecordType.ABORT, 6) == BatchStanding(False, late)
    assert data(transactions, 23) == BatchStanding(False)
