# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.histories import search
from strandline.histories.search import DETERMINISM, once, twice
from tests.unit.histories import plays


def test_each_seed_once() -> None:
    found = list(once(range(3, 9), plays.failing, 2))
    assert sorted(outcome.seed for outcome in found) == [3, 4, 5, 6, 7, 8]
    assert {outcome.seed for outcome in found if outcome.problems} == {3, 5, 7}


def test_it_ends_when_it_is_told_to_and_what_was_begun_counts() -> None:
    answers = iter([True, True, True, False, False])
    assert len(list(once(range(100), plays.holding, 1, lambda: next(answers)))) == 3


def test_a_seed_that_depends_on_hashes_is_two_histories() -> None:
    found = list(twice(range(10), plays.by_hash_seed, 2))
    assert sorted(outcome.seed for outcome in found) == list(range(10))
    [odd] = [outcome for outcome in found if outcome.problems]
    assert odd.seed == 5
    assert odd.problems[0].property == DETERMINISM
    assert odd.problems[0].what == "trace hash 1 with PYTHONHASHSEED=1, 2 with 2"


def test_a_seed_that_depends_on_those_before_it_is_two_histories() -> None:
    found = list(twice(range(10), plays.by_what_was_before, 1))
    assert any(outcome.problems for outcome in found)


def test_twice_goes_over_all_seeds_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(search, "SEEDS_AT_ONCE", 2)
    found = list(twice(range(7), plays.holding, 1))
    assert [outcome.seed for outcome in found] == [1, 0, 3, 2, 5, 4, 6]
    assert not any(outcome.problems for outcome in found)


def test_what_was_played_only_once_when_it_ends_does_not_count() -> None:
    # Three to take the seeds, three to play them, one to play the last of them again.
    answers = iter([True] * 7 + [False] * 9)
    assert [outcome.seed for outcome in twice(range(3), plays.holding, 1, lambda: next(answers))] == [2]
