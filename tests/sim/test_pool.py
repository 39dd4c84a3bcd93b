"""A few seeds of the pool, so that pytest alone sees a history fail; `make test` plays the pool beside it
(tests/__main__.py)."""

from __future__ import annotations

import pytest

from strandline.histories.history import FAULTS, OPERATIONS, VIRTUAL_S, play
from strandline.histories.reporting import command

SEEDS = (0, 1, 55, 67, 100)
"""Some without a group or a compacted topic, some with."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_keeps_every_promise(seed: int) -> None:
    outcome = play(seed)
    assert not outcome.problems, "\n".join([*map(str, outcome.problems), f"again: {command(seed)}"])
    assert outcome.virtual_s >= VIRTUAL_S
    assert len(outcome.faults) >= FAULTS
    assert outcome.operations >= OPERATIONS
    assert outcome.transcript


def test_watching_and_leaving_out_what_never_comes_changes_nothing() -> None:
    seen: list[bytes] = []
    outcome = play(1)
    watched = play(1, without=frozenset({9999}), watch=lambda kind, now, who, data: seen.append(kind))
    assert watched.trace_hash == outcome.trace_hash
    assert {b"recv", b"time", b"writ"} <= set(seen)


def test_a_fault_that_is_left_out_is_not_there() -> None:
    outcome = play(1)
    left_out = outcome.faults[0]
    without = play(1, without=frozenset({left_out.number}))
    assert left_out.number not in {fault.number for fault in without.faults}
    assert without.trace_hash != outcome.trace_hash
