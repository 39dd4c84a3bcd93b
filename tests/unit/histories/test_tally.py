# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.histories import tally as module
from strandline.histories.coverage import FAULT, QUORUM
from strandline.histories.outcome import Problem
from strandline.histories.tally import HistoryMinima, Tally
from tests.unit.histories.plays import outcome


def test_sums_and_least_values() -> None:
    tally = Tally()
    tally.add(outcome(2))
    tally.add(outcome(1, faults=7))
    assert (tally.seeds, tally.failed, tally.faults, tally.virtual_s) == (2, 0, 19, 123.0)
    assert (tally.operations, tally.acknowledged) == (1003, 800)
    assert tally.coverage == {(FAULT, "power loss"): 19, (QUORUM, "election"): 4}
    assert tally.least == HistoryMinima(61.0, 7, 501)
    assert str(tally) == "2 seeds, 0 failed"


def test_a_history_that_failed_early_is_not_the_least() -> None:
    tally = Tally()
    tally.add(outcome(2, Problem("I1", 1.0, ""), faults=1))
    assert tally.least is None
    assert str(tally) == "1 seeds, 1 failed"


def test_only_the_first_failures_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(module, "FAILED_KEPT", 2)
    tally = Tally()
    for seed in range(5):
        tally.add(outcome(seed, Problem("I1", 1.0, "")))
    assert tally.failed == 5
    assert [outcome.seed for outcome in tally.failures] == [0, 1]
