"""Seeds chosen by coverage: what is rare is met, what is frequent is met often enough, and the file says which they
are."""

from __future__ import annotations

import pytest

from strandline.histories import seed_choice
from strandline.histories.coverage import FAULT, NEMESIS, SETTING, Coverage
from strandline.histories.outcome import HistoryOutcome, Problem
from strandline.histories.seed_choice import SeedChoice, chosen, items


def outcome(seed: int, *found: tuple[str, str], failed: bool = False) -> HistoryOutcome:
    coverage = Coverage()
    for category, name in found:
        coverage.note(category, name)
    problems = [Problem("LogMatching", 1.0, "what")] if failed else []
    return HistoryOutcome(seed, "", [], problems, "", 60.0, 500, 100, coverage=coverage)


def test_what_is_rare_comes_first() -> None:
    met = {seed: frozenset({("fault", "kill")}) for seed in range(50)}
    met[17] = frozenset({("fault", "kill"), ("fault", "disk lost")})
    assert next(chosen(met, 1)) == 17


def test_everything_that_any_seed_met_is_met() -> None:
    met = {seed: frozenset({("a", str(seed % 7)), ("b", str(seed % 11))}) for seed in range(200)}
    seeds = list(chosen(met, 12))
    assert frozenset().union(*(met[seed] for seed in seeds)) == frozenset().union(*met.values())


def test_items_are_met_many_times_before_any_is_met_too_often() -> None:
    met = {seed: frozenset({("a", str(seed % 4))}) for seed in range(400)}
    seeds = list(chosen(met, 40, times=10))
    assert [sum(seed % 4 == kind for seed in seeds) for kind in range(4)] == [10] * 4


def test_no_more_than_there_are_and_each_once() -> None:
    met = {seed: frozenset({("a", "b")}) for seed in range(5)}
    assert sorted(chosen(met, 9)) == [0, 1, 2, 3, 4]


def test_an_act_in_another_setting_is_another_item() -> None:
    coverage = outcome(1, (NEMESIS, "power losses"), (SETTING, "racks"), (FAULT, "kill")).coverage
    assert ("nemesis in a setting", "power losses", "racks") in items(coverage)


def test_a_seed_that_failed_is_not_chosen() -> None:
    choice = SeedChoice()
    choice.add(outcome(1, (FAULT, "kill"), failed=True))
    choice.add(outcome(2, (FAULT, "kill")))
    assert choice.choose(5) == [2]


def test_what_is_met_too_rarely_is_told() -> None:
    choice = SeedChoice()
    for seed in range(10):
        choice.add(outcome(seed, (FAULT, "kill"), *([(FAULT, "stop")] * (seed < 2))))
    assert choice.rarest([9, 1], below=3) == [(("fault", "stop"), 1), (("fault", "kill"), 2)]


def test_the_file_is_read_as_it_was_written() -> None:
    assert seed_choice.read(seed_choice.write([3, 5, 8], "10 seeds, 0 failed")) == [3, 5, 8]
    assert seed_choice.read("# why\n4  # this one\n\n7\n") == [4, 7]


@pytest.mark.parametrize(
    ("text", "why"), [("4\nx\n", "line 2: 'x' is no seed"), ("# none\n", "no seed"), ("-1\n", "-1")]
)
def test_what_is_no_list_of_seeds_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        seed_choice.read(text)
