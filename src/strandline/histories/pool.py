"""Which history a seed is: the pool of scenarios, the one-node broker's among them.

Always true: the same seed is the same scenario and the same history, as long as no scenario is put before another.
"""

from __future__ import annotations

from collections.abc import Callable

import strandline.histories.scenarios  # noqa: F401  (fills SCENARIOS)
from strandline.histories import one_node, scenario
from strandline.histories.outcome import Outcome
from strandline.histories.scenario import SCENARIOS


def names() -> list[str]:
    return [one_node.NAME, *SCENARIOS]


def name_of(seed: int) -> str:
    pool = names()
    return pool[seed % len(pool)]


def play(seed: int, name: str | None = None) -> Outcome:
    """The history of a seed, of the scenario that it picks or of the one that is named."""
    return _player(name or name_of(seed))(seed)


def _player(name: str) -> Callable[[int], Outcome]:
    if name == one_node.NAME:
        return one_node.play
    return lambda seed: scenario.play(SCENARIOS[name], seed)
