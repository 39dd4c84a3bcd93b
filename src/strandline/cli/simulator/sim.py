"""`sim`: search thousands of simulated histories for one that breaks a promise, or replay one."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from strandline.cli.errors import CommandRefused, explain_os
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, is_terminal, note

if TYPE_CHECKING:
    from strandline.cli.simulator.search_progress import SearchDisplay
    from strandline.cli.simulator.search_report import SearchReport
    from strandline.cli.terminal.interrupts import StopRequest
    from strandline.histories.outcome import HistoryOutcome
    from strandline.histories.seed_choice import SeedChoice
    from strandline.histories.shrink import SmallestFaultSet
    from strandline.histories.tally import Tally
    from strandline.histories.worker_pool import Play

SHRUNK_MAX = 3
"""Failed seeds of one search that are shrunk, each of another property."""
_UNITS_S = {"s": 1, "m": 60, "h": 3600}


def _seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"([1-9]\d{0,5})([smh])", value)
    if match is None:
        raise click.BadParameter(f"'{value}' is not a duration; write it as 30s, 10m or 2h")
    return int(match[1]) * _UNITS_S[match[2]]


def _fault_numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> frozenset[int]:
    from strandline.histories.fault_numbers import read

    try:
        return frozenset() if value is None else read(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _jobs() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _play() -> Play:
    from strandline.histories.history import play

    return play


@click.command(
    epilog=example(
        "strandline sim --seeds 1000",
        "strandline sim --time 10m --jobs 4",
        "strandline sim --seed 7",
        "strandline sim --seed 7 --without 1-4,6,8- --trace 7.jsonl",
        "strandline sim --seeds 1000 --choose 300 --out seeds.txt",
        "strandline sim --seeds-from seeds.txt",
    )
)
@click.option("--seeds", type=click.IntRange(min=1), metavar="COUNT", help="Play so many histories.")
@click.option("--time", "time_s", callback=_seconds, metavar="10m", help="Play histories for this time.")
@click.option("--first", type=click.IntRange(min=0), metavar="SEED", help="The seed to begin with (default: 0).")
@click.option("--seeds-from", metavar="FILE", help="Play the seeds that a file names, one in each line.")
@click.option(
    "--choose", type=click.IntRange(min=1), metavar="COUNT", help="Choose so many of the seeds by what they exercise."
)
@click.option("--out", metavar="FILE", help="Where the chosen seeds are written to.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="COUNT", help="Processes (default: one for each core).")
@click.option("--twice", is_flag=True, help="Play each seed in two processes, and check that the histories are equal.")
@click.option(
    "--require", type=click.IntRange(min=1), metavar="TIMES", help="Fail if a fault or transition occurred less often."
)
@click.option("--coverage", is_flag=True, help="Show the whole coverage instead of a line for each category.")
@click.option("--seed", type=click.IntRange(min=0), metavar="SEED", help="Play this history, and print what happens.")
@click.option("--without", callback=_fault_numbers, metavar="3,5", help="Leave out these faults of the seed.")
@click.option(
    "--trace", metavar="FILE", help="Write everything that happens in the history, also each delivery, as JSON lines."
)
@click.option("--nemeses", "--acts", "nemeses", is_flag=True, help="Show the nemeses that histories are made of.")
@click.option(
    "--shrink/--no-shrink",
    default=True,
    help="Search for the fewest faults with which a failed seed still fails (default).",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: one object for a search, one for each line of a history."
)
def sim(
    seeds: int | None,
    time_s: int | None,
    first: int | None,
    seeds_from: str | None,
    choose: int | None,
    out: str | None,
    jobs: int | None,
    twice: bool,
    require: int | None,
    coverage: bool,
    seed: int | None,
    without: frozenset[int],
    trace: str | None,
    nemeses: bool,
    shrink: bool,
    as_json: bool,
) -> int:
    """Play whole clusters in virtual time, with the faults of a seed, and judge whether every promise was kept.

    A seed is one history, always the same. Exit code 1 if one failed. After Ctrl-C a search reports what was played so far.
    """
    jobs = jobs or _jobs()
    if nemeses:
        return _list_nemeses()
    if seed is not None:
        _refuse_beside(
            "--seed",
            seeds=seeds,
            time=time_s,
            first=first,
            **{"seeds-from": seeds_from},
            choose=choose,
            twice=twice,
            require=require,
            coverage=coverage,
        )
        return _replay(seed, without, trace, as_json, jobs if shrink and not as_json else 0)
    if without or trace:
        raise click.UsageError(f"{'--without' if without else '--trace'} is for one seed: name it with --seed")
    named = None if seeds_from is None else _read_seeds(seeds_from)
    if named is not None and (seeds is not None or first is not None):
        raise click.UsageError("--seeds-from names the seeds: leave --seeds and --first out")
    if (choose is None) is not (out is None):
        raise click.UsageError("--choose and --out go together: how many seeds, and the file to write them to")
    if seeds is None and time_s is None and named is None:
        raise click.UsageError(
            "nothing to do: give a number of histories (--seeds 1000), a time (--time 10m) or one seed (--seed 7)"
        )
    from strandline.cli.simulator.search_report import print_report, print_report_json
    from strandline.histories.seed_choice import SeedChoice

    seed_choice = None if choose is None else SeedChoice()
    wanted = named if named is not None else _from(first or 0, seeds)
    count = seeds if named is None else len(named)
    report = _search(wanted, count, time_s, jobs, twice, require, shrink, seed_choice)
    if seed_choice is not None and choose is not None and out is not None:
        _write_chosen(seed_choice, choose, out, report)
    if as_json:
        print_report_json(report)
    else:
        print_report(report, coverage)
    return 1 if report.failed else 0


def _refuse_beside(option: str, **others: object) -> None:
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise click.UsageError(f"--{given[0]} is for a search; {option} plays one history")


def _list_nemeses() -> int:
    from strandline.cli.terminal.output import print_table
    from strandline.histories.nemeses import NEMESES

    print_table(("nemesis", "what happens"), [(nemesis.name, nemesis.meaning) for nemesis in NEMESES.values()])
    return 0


# Searching


def _from(first: int, count: int | None) -> Iterable[int]:
    return itertools.count(first) if count is None else range(first, first + count)


def _read_seeds(path: str) -> list[int]:
    from strandline.histories import seed_choice

    try:
        with open(path, encoding="utf-8") as file:
            return seed_choice.read(file.read())
    except OSError as error:
        raise CommandRefused(explain_os(error)) from None
    except ValueError as error:
        raise CommandRefused(f"{path} is not a list of seeds: {error}") from None


def _write_chosen(seed_choice: SeedChoice, count: int, path: str, report: SearchReport) -> None:
    from strandline.histories.seed_choice import TIMES, write

    seeds = seed_choice.choose(count)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(write(seeds, str(report.tally)))
    except OSError as error:
        raise CommandRefused(explain_os(error)) from None
    rare = seed_choice.rarest(seeds, below=TIMES)
    note(
        f"{len(seeds)} seeds written to {path}; {len(rare)} items occur less than {TIMES} times, though more often in other seeds"
    )


def _search(
    seeds: Iterable[int],
    count: int | None,
    time_s: int | None,
    jobs: int,
    twice: bool,
    require: int | None,
    shrink: bool,
    seed_choice: SeedChoice | None = None,
) -> SearchReport:
    from strandline.cli.simulator.search_progress import display
    from strandline.cli.simulator.search_report import SearchReport
    from strandline.cli.terminal.interrupts import ctrl_c
    from strandline.histories import search
    from strandline.histories.tally import Tally

    tally = Tally()
    began = time.monotonic()
    play = _play()
    runs = search.twice if twice else search.once
    shown = display(count, time_s)
    shown.show(tally)
    with ctrl_c() as stop:

        def go_on() -> bool:
            return not stop.requested and (time_s is None or time.monotonic() - began < time_s)

        try:
            for outcome in runs(iter(seeds), play, jobs, go_on):
                tally.add(outcome)
                if seed_choice is not None:
                    seed_choice.add(outcome)
                if outcome.problems:
                    shown.say(f"seed {outcome.seed} failed: {outcome.problems[0]}")
                shown.show(tally)
            elapsed_s = time.monotonic() - began
            smallest = _shrink_some(tally, play, jobs, shown, stop) if shrink and tally.failures else {}
        finally:
            shown.close()
        if stop.requested:
            note("interrupted; this is the result so far")
    return SearchReport(tally, elapsed_s, smallest, _lacking(tally, require))


def _shrink_some(
    tally: Tally, play: Play, jobs: int, shown: SearchDisplay, stop: StopRequest
) -> dict[int, SmallestFaultSet]:
    """Shrink the first failure of each property, until a stop is requested."""
    firsts: dict[str, HistoryOutcome] = {}
    for outcome in sorted(tally.failures, key=lambda outcome: outcome.seed):
        firsts.setdefault(outcome.problems[0].property, outcome)
    found = {}
    for outcome in itertools.islice(filter(_can_shrink, firsts.values()), SHRUNK_MAX):
        if not stop.requested:
            found[outcome.seed] = _shrunk(outcome, play, jobs, shown, stop)
    return found


def _can_shrink(outcome: HistoryOutcome) -> bool:
    """Whether shrinking makes sense: not for a crash, nor for a history that differs each time."""
    from strandline.histories.search import DETERMINISM

    return bool(outcome.faults) and outcome.problems[0].property != DETERMINISM


def _shrunk(
    outcome: HistoryOutcome, play: Play, jobs: int, shown: SearchDisplay, stop: StopRequest
) -> SmallestFaultSet:
    from strandline.histories.shrink import RUNS_MAX, shrink
    from strandline.histories.worker_pool import WorkerPool

    def go_on(runs: int, faults: int) -> bool:
        shown.shrinking(outcome.seed, runs, RUNS_MAX, faults)
        return not stop.requested

    shown.shrinking(outcome.seed, 0, RUNS_MAX, len(outcome.faults))
    with WorkerPool(play, jobs) as pool:
        return shrink(outcome, pool, go_on=go_on)


def _lacking(tally: Tally, require: int | None) -> list[str]:
    if require is None:
        return []
    from strandline.histories.required import too_rare, too_small

    rare = too_rare(tally.coverage, require)
    return [
        *(f"{category} '{name}' {times} times, fewer than {require}" for category, name, times in rare),
        *too_small(tally.least),
    ]


# One history


def _replay(seed: int, without: frozenset[int], trace: str | None, as_json: bool, shrink_jobs: int) -> int:
    from strandline.histories import reporting, trace_file
    from strandline.histories.worker_pool import expect_abandoned

    expect_abandoned()
    play = _play()
    recorded = trace_file.TraceFile() if trace else None
    outcome = play(seed, without=without, watch=recorded.watch if recorded else None)
    if recorded is not None and trace is not None:
        try:
            with open(trace, "w", encoding="utf-8") as file:
                count = recorded.write(outcome, file)
        except OSError as error:
            raise CommandRefused(explain_os(error)) from None
        note(f"{count} lines written to {trace}")
    if as_json:
        import json

        for part in (trace_file.opening, trace_file.reported_events, trace_file.closing):
            for line in part(outcome):
                echo(json.dumps(line))
        return 1 if outcome.problems else 0
    for words in reporting.beginning(outcome):
        echo(words)
    for event in reporting.events(outcome):
        colour = {reporting.FAULT: "yellow", reporting.PROBLEM: "red"}.get(event.kind)
        click.echo(click.style(str(event), fg=colour) if colour and is_terminal() else str(event))
    for words in (*reporting.ending(outcome), *reporting.failure(outcome)):
        echo(words)
    if outcome.problems and shrink_jobs and not without and _can_shrink(outcome):
        _print_smallest(outcome, play, shrink_jobs)
    return 1 if outcome.problems else 0


def _print_smallest(outcome: HistoryOutcome, play: Play, jobs: int) -> None:
    from strandline.cli.simulator.search_progress import display
    from strandline.cli.terminal.interrupts import ctrl_c
    from strandline.histories import reporting

    shown = display(None, None)
    with ctrl_c() as stop:
        try:
            found = _shrunk(outcome, play, jobs, shown, stop)
        finally:
            shown.close()
    for line in reporting.smallest(found, len(outcome.faults)):
        echo(line)
