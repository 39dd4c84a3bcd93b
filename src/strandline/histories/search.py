"""The search: many seeds, each played once, or each played twice to see that it is one history.

Always true: a seed is reported once, when all of its runs are over. `go_on` is asked before every run: after a no the
runs that are under way come to their end, and no other begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from strandline.histories.outcome import HistoryOutcome, Problem
from strandline.histories.worker_pool import HistoryTask, Play, WorkerPool

DETERMINISM = "one seed is one history"
"""The property that --twice judges."""
HASH_SEEDS = (1, 2)
SEEDS_AT_ONCE = 20
"""So many seeds per process are played before they are played again."""


def once(
    seeds: Iterable[int], play: Play, jobs: int, go_on: Callable[[], bool] = lambda: True
) -> Iterator[HistoryOutcome]:
    with WorkerPool(play, jobs) as pool:
        for _, outcome in pool.play(map(HistoryTask, while_(go_on, seeds))):
            yield outcome


def twice(
    seeds: Iterable[int], play: Play, jobs: int, go_on: Callable[[], bool] = lambda: True
) -> Iterator[HistoryOutcome]:
    """The second time in another process, with another PYTHONHASHSEED, and after other histories than the first
    time."""
    left = while_(go_on, seeds)
    with (
        WorkerPool(play, jobs, hash_seed=HASH_SEEDS[0]) as first,
        WorkerPool(play, jobs, hash_seed=HASH_SEEDS[1]) as second,
    ):
        while some := list(itertools.islice(left, SEEDS_AT_ONCE * jobs)):
            played = {task.seed: outcome for task, outcome in first.play(map(HistoryTask, while_(go_on, some)))}
            for task, again in second.play(map(HistoryTask, while_(go_on, sorted(played, reverse=True)))):
                yield compared(played[task.seed], again)


def while_(go_on: Callable[[], bool], seeds: Iterable[int]) -> Iterator[int]:
    return itertools.takewhile(lambda seed: go_on(), seeds)


def compared(outcome: HistoryOutcome, again: HistoryOutcome) -> HistoryOutcome:
    """The first, with one problem more if the second was another history."""
    if outcome.trace_hash != again.trace_hash:
        what = (
            f"trace hash {outcome.trace_hash or 'unknown'} with PYTHONHASHSEED={HASH_SEEDS[0]}, "
            f"{again.trace_hash or 'unknown'} with {HASH_SEEDS[1]}"
        )
        outcome.problems.append(Problem(DETERMINISM, outcome.virtual_s, what))
    return outcome
