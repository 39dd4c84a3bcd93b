"""Histories played by a node with a mutant in it, in a process of its own.

`python -m tests.mutants.playing NAME FIRST END` plays the seeds from FIRST to before END and says after each, as a line of JSON,
what it found; it ends with the first that found something. Without a mutant (`-`) that is what the code as it is does.

Always true: a history that does not come to its end has found something too; one that can't be played at all has not.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import NamedTuple

from tests.mutants import loader, mutant

SECONDS_MAX = 120
"""For one history: more than a hundred times what one takes."""
NO_MUTANT = "-"


class Played(NamedTuple):
    seed: int
    breaks: str | None
    """The first property that did not hold."""
    what: str
    seconds: float


class Endless(Exception):
    """The history goes on and on."""


def play(seed: int) -> Played:
    from strandline.histories import history  # with the mutant, if there is one

    begin = time.perf_counter()
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(SECONDS_MAX)
    breaks, what = None, ""
    try:
        outcome = history.play(seed)
        if outcome.problems:
            first = outcome.problems[0]
            breaks, what = first.property, str(first)
    except Endless as error:
        breaks, what = type(error).__name__, str(error)
    finally:
        signal.alarm(0)
    return Played(seed, breaks, what, time.perf_counter() - begin)


def _give_up(signal_number: int, frame: object) -> None:
    raise Endless(f"it did not end within {SECONDS_MAX} s")


def main() -> None:
    name, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if name != NO_MUTANT:
        loader.install(mutant.named(name))
    for seed in range(first, end):
        played = play(seed)
        print(json.dumps(played), flush=True)
        if played.breaks is not None:
            break


if __name__ == "__main__":
    main()
