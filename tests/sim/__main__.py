"""Run many histories, or one of them again: `python -m tests.sim --seeds 1000`, `--seed 7`.

A seed picks a scenario of the pool; `--scenario` names one for all seeds. `--seed` prints what happened, one line each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from rich.progress import Progress

from strandline.histories import pool
from strandline.histories.outcome import Outcome


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="only this one, with what happened in it")
    parser.add_argument("--scenario", choices=pool.names(), help="for all seeds, instead of the one that each picks")
    parser.add_argument("--list", action="store_true", help="show the scenarios")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.list:
        print("\n".join(pool.names()))
        return 0
    if options.seed is not None:
        outcome = pool.play(options.seed, options.scenario)
        print(outcome)
        return 1 if outcome.problems else 0
    return run(range(options.first, options.first + options.seeds), options.scenario, options.jobs)


def run(seeds: range, scenario: str | None, jobs: int) -> int:
    started = time.monotonic()
    failed: list[Outcome] = []
    played: Counter[str] = Counter()
    acknowledged = 0
    play = partial(pool.play, name=scenario)
    with ProcessPoolExecutor(jobs) as workers, Progress() as progress:
        for outcome in progress.track(workers.map(play, seeds, chunksize=4), total=len(seeds), description="histories"):
            played[outcome.scenario] += 1
            acknowledged += outcome.acknowledged
            if outcome.problems:
                failed.append(outcome)
                progress.console.print(f"seed {outcome.seed}, {outcome.scenario}: {outcome.problems[0]}", markup=False)
    elapsed_s = time.monotonic() - started
    print(f"{len(played)} scenarios, {acknowledged} operations acknowledged")
    print(f"{len(seeds) / elapsed_s:.1f} seeds per second")
    print(f"{len(seeds)} seeds, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
