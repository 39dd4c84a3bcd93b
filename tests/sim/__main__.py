"""Run many histories of the one-node broker, or one of them again: `python -m tests.sim --seeds 1000`, `--seed 7`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rich.progress import Progress

from tests.sim.one_node import Outcome, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="only this one, with its verdict")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.seed is not None:
        outcome = play(options.seed)
        print(outcome)
        return 1 if outcome.problems else 0
    started = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    failed: list[Outcome] = []
    with ProcessPoolExecutor(options.jobs) as pool, Progress() as progress:
        for outcome in progress.track(pool.map(play, seeds, chunksize=4), total=len(seeds), description="histories"):
            if outcome.problems:
                failed.append(outcome)
                progress.console.print(f"seed {outcome.seed}: {outcome.problems[0]}")
    elapsed_s = time.monotonic() - started
    print(f"{len(seeds) / elapsed_s:.1f} seeds per second")
    print(f"{len(seeds)} seeds, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
