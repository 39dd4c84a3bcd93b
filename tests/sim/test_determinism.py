"""One seed is one history, whatever hashes are and whatever was played before it in the same process."""

from __future__ import annotations

import pytest

from strandline.histories.history import play
from strandline.histories.worker_pool import HistoryTask, WorkerPool
from tests.soak import times

FIRST, SEEDS = 2000, times(4, 40)
"""Not those of the pool: `strandline sim --twice` plays any number of others so."""


@pytest.mark.timeout(600)
def test_the_same_seeds_are_the_same_histories() -> None:
    forwards, backwards = range(FIRST, FIRST + SEEDS), range(FIRST + SEEDS - 1, FIRST - 1, -1)
    assert hashes(forwards, hash_seed=1) == hashes(backwards, hash_seed=2)


def hashes(seeds: range, hash_seed: int) -> dict[int, str]:
    with WorkerPool(play, 1, hash_seed=hash_seed) as pool:
        outcomes = [outcome for _, outcome in pool.play(map(HistoryTask, seeds))]
    found = {outcome.seed: outcome.trace_hash for outcome in outcomes}
    assert all(found.values()), outcomes
    assert len(set(found.values())) == len(found)
    return found
