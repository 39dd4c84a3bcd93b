from __future__ import annotations

from strandline.histories import reporting
from strandline.histories.outcome import UNDER_FAULTS, InjectedFault, Problem
from strandline.histories.shrink import SmallestFaultSet
from tests.unit.histories.plays import outcome

PROBLEM = Problem("I4", 7.75, "n2 lost offset 7")


def test_one_line_for_each_event_in_their_order() -> None:
    printed = [str(event) for event in reporting.events(outcome(1, PROBLEM, faults=2))]
    assert printed == [
        "    1.0000  fault 1   power loss n1",
        "    1.5000  n1        leader, epoch 2",
        "    2.0000  fault 2   power loss n2",
        "    7.5000  client1   creates t",
        "    7.7500  judge     VIOLATES I4: n2 lost offset 7",
    ]


def test_how_it_begins_and_ends() -> None:
    one = outcome(1, faults=2)
    assert list(reporting.beginning(one)) == ["seed 1: 3 combined nodes", "nemeses: leader killed, split"]
    assert list(reporting.ending(one)) == [
        "61.0 virtual seconds, 2 faults, 501 operations, 400 acknowledged",
        "trace 0001",
    ]
    assert list(reporting.failure(one)) == []


def test_a_failure_with_its_fewest_faults() -> None:
    found = SmallestFaultSet(
        17,
        PROBLEM,
        PROBLEM.property,
        [InjectedFault(3, 3.0, "power loss", "n2"), InjectedFault(8, 7.5, "cut", "n1 n3")],
        23,
        True,
    )
    assert list(reporting.failure(outcome(17, PROBLEM))) == ["seed 17 failed: I4 at 7.750 s: n2 lost offset 7"]
    assert list(reporting.smallest(found, 12)) == [
        "  the smallest set of faults that still fails: 2 of 12, after 23 runs",
        "    #3 at 3.000 s: power loss n2",
        "    #8 at 7.500 s: cut n1 n3",
        "  then I4 at 7.750 s: n2 lost offset 7",
        "  again: strandline sim --seed 17 --without 1-2,4-7,9-",
    ]


def test_a_search_that_was_cut_short_does_not_claim_the_smallest() -> None:
    found = SmallestFaultSet(17, PROBLEM, PROBLEM.property, [], 150, False)
    assert next(reporting.smallest(found, 12)) == "  the fewest faults found that still fail: 0 of 12, after 150 runs"


def test_a_failure_that_does_not_come_again() -> None:
    printed = list(reporting.smallest(SmallestFaultSet(17, None, "LostWrite", [], 1, False), 12))
    assert "did not fail when it was played again" in printed[0]
    assert printed[-1] == "  again: strandline sim --seed 17"


def test_what_is_judged_only_with_all_faults_says_so() -> None:
    printed = list(reporting.smallest(SmallestFaultSet(17, None, UNDER_FAULTS, [], 1, False), 12))
    assert printed == [
        "  liveness under faults is judged only with all faults: none can be left out",
        "  again: strandline sim --seed 17",
    ]


def test_a_failure_before_any_fault_says_so() -> None:
    assert list(reporting.failure(outcome(17, PROBLEM, faults=0)))[-1] == "  before any fault"
