"""The seeds that found a bug, played again."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from strandline.histories.history import play
from strandline.histories.reporting import command

FILE = Path(__file__).with_name("regressions.toml")
REGRESSIONS: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8")).get("regression", [])


def test_each_says_what_it_taught_and_is_there_once() -> None:
    assert all(set(regression) == {"seed", "property", "taught"} for regression in REGRESSIONS)
    assert all(regression["property"] and len(regression["taught"]) > 20 for regression in REGRESSIONS)
    seeds = [regression["seed"] for regression in REGRESSIONS]
    assert len(seeds) == len(set(seeds))


@pytest.mark.parametrize("regression", REGRESSIONS, ids=lambda regression: str(regression["seed"]))
def test_the_bug_stays_away(regression: dict[str, Any]) -> None:
    outcome = play(regression["seed"])
    found = "\n".join(map(str, outcome.problems))
    assert not outcome.problems, f"{found}\nit once taught: {regression['taught']}\nagain: {command(outcome.seed)}"
