"""`python -m tests.mutants`: every mutant meets its seed and its test, or the seeds are searched for one that notices it.

Always true: it ends with 1 if any mutant survives both. A search that was interrupted goes on where it was (`progress.py`).
"""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.mutants import listing, mutant, searching
from tests.mutants.progress import Done
from tests.mutants.searching import Budget, Verdict


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="This mutant; may be given several times.")
@click.option("--first", default=0, show_default=True, help="The first seed of a search.")
@click.option("--budget", default=100, show_default=True, help="So many seeds for each mutant.")
@click.option("--jobs", default=2, show_default=True, help="So many mutants at once.")
@click.option("--fresh", is_flag=True, help="Search from the first seed on, whatever is written down.")
@click.option("--unseen", is_flag=True, help="Search also for those that only a test has noticed so far.")
@click.option("--update", is_flag=True, help="Write what was found into the table and the page.")
@click.option("--restart", is_flag=True, help="Forget what an interrupted search has found already.")
def main(
    only: tuple[str, ...],
    first: int,
    budget: int,
    jobs: int,
    fresh: bool,
    unseen: bool,
    update: bool,
    restart: bool,
) -> None:
    """Break the code on purpose, one rule at a time, and see that it is noticed: by seeds alone, and by a test."""
    mutants = [mutant.named(name) for name in only] or [*mutant.all_mutants().values()]
    begin = time.monotonic()
    console = Console()
    wanted = Budget(first, budget, fresh, unseen)
    done = Done(wanted, restart=restart)
    verdicts = [known for each in mutants if (known := done.verdict(each)) is not None]
    left = [each for each in mutants if done.verdict(each) is None]
    if verdicts:
        console.print(f"{len(verdicts)} mutants were done before this was interrupted; --restart does them again")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("mutants", total=len(mutants), completed=len(verdicts))

        def tell(name: str, tried: int) -> None:
            progress.update(task, description=f"{name}: {tried} seeds")

        for verdict in searching.search_all(left, wanted, jobs, tell):
            verdicts.append(verdict)
            done.note(verdict)
            progress.advance(task)
            if not verdict.is_caught:
                console.print(f"[red]{verdict.mutant.name} survives {verdict.tried} seeds, and its test[/red]")
    if update:
        _write_down(verdicts, wanted)
    done.forget()
    console.print(_table(verdicts))
    by_seed = sum(verdict.by_seed for verdict in verdicts)
    by_test = sum(verdict.by_test for verdict in verdicts)
    survivors = sum(not verdict.is_caught for verdict in verdicts)
    console.print(
        f"{len(verdicts)} mutants: {by_seed} noticed by seeds alone, {by_test} by their tests, "
        f"{survivors} survived, {time.monotonic() - begin:.0f} s"
    )
    sys.exit(1 if survivors else 0)


def _write_down(verdicts: list[Verdict], wanted: Budget) -> None:
    text = mutant.TABLE.read_text()
    for verdict in verdicts:
        played = verdict.played
        if played is not None and played.breaks is not None:
            text = mutant.with_seed(text, verdict.mutant.name, played.seed, played.breaks)
        elif verdict.is_searched and wanted.first == 0:
            text = mutant.with_survival(text, verdict.mutant.name, wanted.seeds)
    mutant.TABLE.write_text(text)
    listing.PAGE.write_text(listing.page(mutant.all_mutants().values()))


def _table(verdicts: list[Verdict]) -> Table:
    table = Table("mutant", "rule", "seeds alone", "property that failed", "its test", "seconds", box=None)
    for verdict in verdicts:
        played = verdict.played
        if played is not None:
            row = (f"seed {played.seed}", str(played.breaks))
        elif verdict.is_searched:
            row = (f"none of {verdict.tried}", "")
        else:
            row = ("not searched", "")
        by_test = "notices" if verdict.by_test else "[red]does not notice[/red]" if verdict.mutant.test else "has none"
        seconds = "" if played is None else f"{played.seconds:.1f}"
        table.add_row(verdict.mutant.name, verdict.mutant.rule, *row, by_test, seconds)
    return table


if __name__ == "__main__":
    main()
