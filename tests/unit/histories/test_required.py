from __future__ import annotations

from strandline.histories.coverage import FAULT, REPLICA, Coverage
from strandline.histories.fault_injector import KINDS
from strandline.histories.history import VIRTUAL_S
from strandline.histories.required import required, too_rare, too_small
from strandline.histories.tally import HistoryMinima


def test_every_fault_kind_and_the_transitions() -> None:
    assert {name for category, name in required() if category == FAULT} == set(KINDS)
    assert (REPLICA, "truncation") in required()


def test_what_is_too_rare_is_named_with_how_often_it_was() -> None:
    coverage = Coverage(dict.fromkeys(required(), 50))
    assert too_rare(coverage, 50) == []
    coverage[REPLICA, "truncation"] = 49
    del coverage[FAULT, "kill"]
    assert too_rare(coverage, 50) == [(FAULT, "kill", 0), (REPLICA, "truncation", 49)]


def test_a_history_that_is_too_small() -> None:
    assert too_small(None) == []
    assert too_small(HistoryMinima(VIRTUAL_S, 5, 500)) == []
    assert too_small(HistoryMinima(VIRTUAL_S - 0.5, 4, 500)) == [
        f"a history of {VIRTUAL_S - 0.5} virtual seconds, fewer than {VIRTUAL_S:.0f}",
        "a history of 4 faults, fewer than 5",
    ]
