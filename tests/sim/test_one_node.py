"""The one-node broker in the simulator: what it acknowledges on a topic with `flush.messages=1` survives power losses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from strandline.histories.one_node import NAME, TOPIC, play
from strandline.replica.partition import Partition
from strandline.sim.file import SimFile

SEEDS = 60
SEEDS_PER_TEST = 10
SEEDS_TO_CATCH = 40
"""A broker that breaks its promise is caught within so many histories."""


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_nothing_acknowledged_is_lost(first: int) -> None:
    outcomes = [play(seed) for seed in range(first, first + SEEDS_PER_TEST)]
    broken = {outcome.seed: outcome.problems for outcome in outcomes if outcome.problems}
    assert not broken, f"replay with: python -m tests.sim --scenario '{NAME}' --seed {min(broken)}\n{broken}"
    assert all(outcome.acknowledged > 100 for outcome in outcomes), (
        "a history in which hardly anything was written shows nothing"
    )
    assert sum(outcome.faults.get("power loss", 0) for outcome in outcomes) >= SEEDS_PER_TEST


def test_the_same_seed_is_the_same_history_whatever_the_hash_seed() -> None:
    script = "from strandline.histories.one_node import play; print(play(3).trace_hash)"
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
    assert hashes == {play(3).trace_hash + "\n"}


def test_without_the_fsync_a_power_loss_takes_what_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimFile.sync

    async def pretend(self: SimFile) -> None:
        """Says that the records are on the device, and did nothing."""
        if TOPIC not in self.path:
            await honest(self)

    monkeypatch.setattr(SimFile, "sync", pretend)
    assert is_caught("lost-write")


def test_a_reply_before_the_fsync_is_a_promise_that_a_power_loss_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    flushing = Partition.after_append

    def reply_at_once(self: Partition) -> None:
        flushing(self)
        self.vouch_for(self.log.log_end_offset)

    monkeypatch.setattr(Partition, "after_append", reply_at_once)
    assert is_caught("lost-write")


def is_caught(kind: str) -> bool:
    """Whether a history shows a problem of this kind. Others do not come to their end: what is lost in the middle of a log can't be
    read, and here no other replica has it."""
    return any(kind in "\n".join(play(seed).problems) for seed in range(SEEDS_TO_CATCH))
