# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.histories.outcome import HistoryOutcome
from strandline.histories.shrink import SmallestFaultSet, shrink
from strandline.histories.worker_pool import WorkerPool
from tests.unit.histories import plays


def smallest(failed: HistoryOutcome, play, jobs: int = 1, **options) -> SmallestFaultSet:
    with WorkerPool(play, jobs) as pool:
        return shrink(failed, pool, **options)


def numbers(found: SmallestFaultSet) -> list[int]:
    return [fault.number for fault in found.faults]


def test_only_the_faults_that_are_needed_stay() -> None:
    for jobs in (1, 2):
        found = smallest(plays.failing(7), plays.failing, jobs)
        assert numbers(found) == [3, 8]
        assert found.complete
        assert found.problem is not None
        assert found.problem.property == "I4"
        assert found.runs < 30


def test_what_is_found_fails_again_when_it_is_played() -> None:
    found = smallest(plays.failing(7), plays.failing)
    again = plays.failing(7, without=found.without)
    assert again.problems
    assert again.faults == found.faults


def test_a_failure_that_needs_no_fault() -> None:
    found = smallest(plays.failing_in_any_case(7), plays.failing_in_any_case)
    assert (numbers(found), found.runs, found.complete) == ([], 2, True)


def test_it_must_be_the_same_property() -> None:
    """Every smaller set leaves out number 9 too, and fails otherwise."""
    found = smallest(plays.failing_elsewhere(7), plays.failing_elsewhere)
    assert found.problem is None


def test_a_seed_that_does_not_fail_again_says_so() -> None:
    found = smallest(plays.failing(7), plays.holding)
    assert (found.problem, found.runs, found.complete) == (None, 1, False)


def test_the_runs_have_a_bound() -> None:
    found = smallest(plays.failing(7), plays.failing, runs_max=4)
    assert found.runs == 4
    assert not found.complete
    assert {3, 8} <= set(numbers(found))


def test_whoever_watches_can_end_it() -> None:
    heard = []

    def go_on(runs: int, left: int) -> bool:
        heard.append((runs, left))
        return len(heard) < 3

    found = smallest(plays.failing(7), plays.failing, go_on=go_on)
    assert [runs for runs, _ in heard] == [1, 2, 3]
    assert found.problem is not None
    assert not found.complete
