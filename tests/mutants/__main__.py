"""`python -m tests.mutants`: every mutant meets its seed or its test, or the seeds are searched for one that catches it.

Always true: it ends with 1 if any mutant survives.
"""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.mutants import listing, mutant, searching
from tests.mutants.searching import Budget, Verdict


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="This mutant; may be given several times.")
@click.option("--first", default=0, show_default=True, help="The first seed of a search.")
@click.option("--budget", default=300, show_default=True, help="So many seeds for each mutant.")
@click.option("--jobs", default=2, show_default=True, help="So many mutants at once.")
@click.option("--fresh", is_flag=True, help="Search from the first seed on, whatever is written down.")
@click.option("--unseen", is_flag=True, help="Search also for those that only a test has noticed so far.")
@click.option("--update", is_flag=True, help="Write the seeds that were found into the table and the page.")
def main(only: tuple[str, ...], first: int, budget: int, jobs: int, fresh: bool, unseen: bool, update: bool) -> None:
    """Break the code on purpose, one rule at a time, and see that it is noticed."""
    mutants = [mutant.named(name) for name in only] or [*mutant.all_mutants().values()]
    begin = time.monotonic()
    console = Console()
    verdicts = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("mutants", total=len(mutants))

        def tell(name: str, tried: int) -> None:
            progress.update(task, description=f"{name}: {tried} seeds")

        for verdict in searching.search_all(mutants, Budget(first, budget, fresh, unseen), jobs, tell):
            verdicts.append(verdict)
            progress.advance(task)
            if not verdict.is_caught:
                console.print(f"[red]{verdict.mutant.name} survives {verdict.tried} seeds[/red]")
            elif update and verdict.played is not None:
                _write_down(verdict)
    if update:
        listing.PAGE.write_text(listing.page(mutant.all_mutants().values()))
    console.print(_table(verdicts))
    survivors = sum(not verdict.is_caught for verdict in verdicts)
    console.print(f"{len(verdicts)} mutants, {survivors} survived, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if survivors else 0)


def _write_down(verdict: Verdict) -> None:
    played = verdict.played
    assert played is not None
    assert played.breaks is not None
    text = mutant.TABLE.read_text()
    mutant.TABLE.write_text(mutant.with_seed(text, verdict.mutant.name, played.seed, played.breaks))


def _table(verdicts: list[Verdict]) -> Table:
    table = Table("mutant", "rule", "seed", "property that failed", "seconds", box=None)
    for verdict in verdicts:
        played = verdict.played
        if played is not None:
            row = (str(played.seed), played.breaks, f"{played.seconds:.1f}")
        else:
            row = ("", "by its test" if verdict.by_test else "[red]survived[/red]", "")
        table.add_row(verdict.mutant.name, verdict.mutant.rule, *row)
    return table


if __name__ == "__main__":
    main()
