"""The search for a seed that notices a mutant, and beside it the question whether its test does.

Always true: each mutant is played in processes of its own; a seed counts only if the same history, played by the code as it is,
finds nothing. The seed that is written down is tried first, so that a search that was done once is quick.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import NamedTuple

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.playing import NO_MUTANT, Played
from tests.mutants.testing import NOTICED

Progress = Callable[[str, int], None]
"""Told of a mutant how many seeds it has survived."""


class Broken(Exception):
    """A process did not do what it was started for; says what it said."""


class Verdict(NamedTuple):
    mutant: Mutant
    played: Played | None
    """The history that noticed, if one did."""
    by_test: bool
    """Its unit test notices."""
    tried: int
    """How many seeds."""
    is_searched: bool = False
    """All seeds of the budget were tried, or one of them noticed."""

    @property
    def by_seed(self) -> bool:
        """Seeds alone notice."""
        return self.played is not None

    @property
    def is_caught(self) -> bool:
        return self.by_seed or self.by_test


def played_by(name: str, first: int, end: int) -> Iterator[Played]:
    """The seeds from `first` to before `end`, up to the first that finds something."""
    command = [sys.executable, "-m", "tests.mutants.playing", name, str(first), str(end)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            yield Played(*json.loads(line))
        said = process.stderr.read()
    if process.returncode:
        raise Broken(f"{name} could not be played: {said}")


def is_noticed_by_test(mutant: Mutant) -> bool:
    command = [sys.executable, "-m", "tests.mutants.testing", mutant.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, NOTICED):
        raise Broken(f"the test of {mutant.name} could not be run: {done.stdout}{done.stderr}")
    return done.returncode == NOTICED


_playing_sound = Lock()


@cache
def _is_sound(seed: int) -> bool:
    return all(played.breaks is None for played in played_by(NO_MUTANT, seed, seed + 1))


def is_sound(seed: int) -> bool:
    """Whether a history finds nothing wrong with the code as it is."""
    with _playing_sound:
        return _is_sound(seed)


class Budget(NamedTuple):
    """Which seeds are searched, and for whom."""

    first: int
    seeds: int
    fresh: bool
    """Whatever seed is written down; else that one is tried first."""
    unseen: bool
    """Also for a mutant that no seed has noticed so far."""


def search(mutant: Mutant, budget: Budget, tell: Progress) -> Verdict:
    """The first seed that notices, if one does; and whether the test does."""
    by_test = mutant.test is not None and is_noticed_by_test(mutant)
    if mutant.seed is not None and not budget.fresh:
        for played in played_by(mutant.name, mutant.seed, mutant.seed + 1):
            if played.breaks is not None and is_sound(played.seed):
                return Verdict(mutant, played, by_test, 1)
    if mutant.seed is None and not budget.unseen and not budget.fresh and by_test:
        return Verdict(mutant, None, by_test, 0)
    tried, seed, end = 0, budget.first, budget.first + budget.seeds
    while seed < end:
        for played in played_by(mutant.name, seed, end):
            tried += 1
            seed = played.seed + 1
            tell(mutant.name, tried)
            if played.breaks is not None and is_sound(played.seed):
                return Verdict(mutant, played, by_test, tried, is_searched=True)
    return Verdict(mutant, None, by_test, tried, is_searched=True)


def search_all(mutants: list[Mutant], budget: Budget, jobs: int, tell: Progress) -> Iterator[Verdict]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda mutant: search(mutant, budget, tell), mutants)
