"""TXN-TI1, TXN-TI2 and TXN-TI10 notice what breaks them."""

from __future__ import annotations

import pytest

from strandline.histories.judges.transactions import all_or_nothing, copied_once, reads_committed
from strandline.histories.transactions.history import ToldEnd
from strandline.histories.transactions.plan import COPIES, LEDGER

from .recording import Recording, TransactionalLog


def problems(recording: Recording) -> list[str]:
    return list(all_or_nothing.judge(recording.history, recording.seen))


def test_txn_ti1_all_or_nothing_is_fine() -> None:
    recording = Recording()
    recording.written(True, True)
    recording.written(False, False, told=ToldEnd.ABORTED)
    recording.written(True, True, told=ToldEnd.UNKNOWN)
    recording.written(False, False, told=ToldEnd.UNKNOWN, asked=False)
    assert problems(recording) == []


@pytest.mark.parametrize(
    ("ends", "told", "asked", "what"),
    [
        ((True, False), ToldEnd.UNKNOWN, True, "torn"),
        ((False, False), ToldEnd.COMMITTED, True, "nothing of it can be read"),
        ((True, True), ToldEnd.ABORTED, True, "was aborted, and can be read"),
        ((True, True), ToldEnd.UNKNOWN, False, "nobody asked to commit it"),
    ],
)
def test_txn_ti1_notices(ends: tuple[bool, bool], told: ToldEnd, asked: bool, what: str) -> None:
    recording = Recording()
    recording.written(*ends, told=told, asked=asked)
    (found,) = problems(recording)
    assert what in found


def test_txn_ti1_notices_what_a_reader_is_not_given() -> None:
    recording = Recording()
    recording.written(True, True)
    recording.history.final[LEDGER, 1].clear()
    assert any("did not read what is committed" in each for each in problems(recording))


def test_txn_ti1_notices_a_value_twice() -> None:
    recording = Recording()
    begun = recording.written(True, True)
    value = next(iter(begun.values))
    recording.logs[LEDGER, 0].data(7, 1, value)
    recording.logs[LEDGER, 0].marker(7, 1, commit=True)
    recording.history.note_final((LEDGER, 0), value)
    assert any("values twice" in each for each in problems(recording))


def reads(recording: Recording) -> list[str]:
    return list(reads_committed.judge(recording.history, recording.seen))


def test_txn_ti2_what_is_committed_may_be_read() -> None:
    recording = Recording()
    recording.written(False, False, told=ToldEnd.ABORTED)
    recording.written(True, True, epoch=1)
    recording.read(0, 2, b"p-2-0")
    recording.read(1, 2, b"p-2-1")
    assert reads(recording) == []


def test_txn_ti2_notices_an_aborted_and_an_open_one_and_one_that_is_passed_over() -> None:
    recording = Recording()
    recording.written(False, None, told=ToldEnd.UNKNOWN)
    recording.read(0, 0, b"p-1-0")
    assert any("is aborted" in each for each in reads(recording))
    recording = Recording()
    recording.written(True, None, told=ToldEnd.UNKNOWN)
    recording.read(1, 0, b"p-1-1")
    recording.logs[LEDGER, 1].marker(7, 0, commit=True)
    (found,) = reads(recording)
    assert "was open" in found
    recording = Recording()
    recording.written(True, True)
    recording.written(True, True, epoch=1)
    recording.read(0, 2, b"p-2-0")
    assert any("committed are" in each for each in reads(recording))
    recording.read(0, 0, b"other")
    assert any("does not stand there" in each for each in reads(recording))


def test_txn_ti10_each_input_is_copied_once() -> None:
    recording = Recording()
    recording.written(True, True)
    seen = {**recording.seen, (COPIES, 0): TransactionalLog().transactions}
    history = recording.history
    (missing,) = copied_once.judge(history, seen)
    assert "never copied" in missing
    for value in (b"p-1-0>c-1", b"p-1-1>c-1"):
        history.note_final((COPIES, 0), value)
    assert list(copied_once.judge(history, seen)) == []
    history.note_final((COPIES, 0), b"p-1-1>c-2")
    (twice,) = copied_once.judge(history, seen)
    assert "more often" in twice
