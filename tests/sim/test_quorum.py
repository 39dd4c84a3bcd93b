"""Clusters in the simulator: whole nodes, seeded faults, every property checked after every turn of every node."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from strandline.histories import one_node, pool

RUNS = 125
RUNS_PER_TEST = 5
SEEDS = [seed for seed in range(2 * RUNS) if pool.name_of(seed) != one_node.NAME][:RUNS]


@pytest.mark.parametrize("first", range(0, RUNS, RUNS_PER_TEST))
def test_clusters_keep_their_promises(first: int) -> None:
    for seed in SEEDS[first : first + RUNS_PER_TEST]:
        outcome = pool.play(seed)
        assert not outcome.problems, f"replay with: python -m tests.sim --seed {seed}\n{outcome}"
        assert outcome.acknowledged >= 5, "a history in which hardly anything was done shows nothing"


def test_every_scenario_is_played() -> None:
    assert {pool.name_of(seed) for seed in SEEDS} == set(pool.names()) - {one_node.NAME}


def test_the_same_seed_is_the_same_history_whatever_the_hash_seed() -> None:
    script = "from strandline.histories import pool; print(pool.play(2, 'leader killed').trace_hash)"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert hashes == {pool.play(2, "leader killed").trace_hash + "\n"}
