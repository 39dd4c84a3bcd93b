"""`python -m tests.fuzz`: the whole run, with a progress bar."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from strandline.runtime.loop import run as run_loop

from .run import cases, run

FAILURES_SHOWN = 10


@click.command()
@click.option("--mutations", default=2000, show_default=True, help="Requests for each API and version.")
@click.option("--batches", default=2000, show_default=True, help="Record batches for each kind of topic.")
@click.option("--seed", default=1, show_default=True)
@click.option("--api", type=int, help="Only this API key.")
def main(mutations: int, batches: int, seed: int, api: int | None) -> None:
    """Send broken requests of every API and version to a node, and see that it stands."""
    console = Console()
    chosen = [case for case in cases() if api is None or case[0] == api]
    with tempfile.TemporaryDirectory(prefix="strandline-fuzz-") as root, Progress(console=console) as bar:
        task = bar.add_task(f"{len(chosen)} versions of APIs, seed {seed}", total=1)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        result = run_loop(run(Path(root) / "data", mutations, batches, seed, progress, chosen))
    for failure in result.failures[:FAILURES_SHOWN]:
        console.print(f"{failure.api}: {failure.what}\n{failure.data.hex()[:2000]}\n{failure.error}", markup=False)
    ways = ", ".join(f"{count} {way}" for way, count in sorted(result.outcomes.items()))
    console.print(f"{ways}; {result.batches_kept} batches kept, all sound", markup=False)
    console.print(f"memory {result.memory_growth_bytes / 2**20:+.1f} MiB, {result.seconds:.0f} s", markup=False)
    click.echo(f"{result.requests} requests, {len(result.failures)} failures")
    raise SystemExit(1 if result.failures else 0)


if __name__ == "__main__":
    main()
