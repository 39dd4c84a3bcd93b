"""`python -m tests.fuzz`: the whole run, with a progress bar."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from strandline.runtime.loop import run as run_loop

from .controller_stage import ControllerStage, DynamicControllerStage
from .run import run
from .stage import Stage
from .transaction_stage import TransactionStage

FAILURES_SHOWN = 10
STAGES: dict[str, type[Stage]] = {
    "broker": Stage,
    "controller": ControllerStage,
    "dynamic-controller": DynamicControllerStage,
    "transactions": TransactionStage,
}


@click.command()
@click.option("--mutations", default=2000, show_default=True, help="Requests for each API and version.")
@click.option("--batches", default=2000, show_default=True, help="Record batches for each kind of topic.")
@click.option("--seed", default=1, show_default=True)
@click.option("--api", type=int, help="Only this API key.")
@click.option("--listener", type=click.Choice([*STAGES]), default="broker", show_default=True, help="Whom to ask.")
def main(mutations: int, batches: int, seed: int, api: int | None, listener: str) -> None:
    """Send broken requests of every API and version to a node, and see that it stands."""
    console = Console()
    if listener != "broker":
        batches = 0
    with tempfile.TemporaryDirectory(prefix="strandline-fuzz-") as root, Progress(console=console) as bar:
        stage = STAGES[listener](Path(root) / "data")
        chosen = [case for case in stage.cases() if api is None or case[0] == api]
        task = bar.add_task(f"{len(chosen)} versions of APIs, seed {seed}", total=1)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        result = run_loop(run(stage, mutations, batches, seed, progress, chosen))
    for failure in result.failures[:FAILURES_SHOWN]:
        console.print(f"{failure.api}: {failure.what}\n{failure.data.hex()[:2000]}\n{failure.error}", markup=False)
    ways = ", ".join(f"{count} {way}" for way, count in sorted(result.outcomes.items()))
    console.print(f"{ways}; {result.batches_kept} batches kept, all sound", markup=False)
    console.print(f"memory {result.memory_growth_bytes / 2**20:+.1f} MiB, {result.seconds:.0f} s", markup=False)
    click.echo(f"{result.requests} requests, {len(result.failures)} failures")
    raise SystemExit(1 if result.failures else 0)


if __name__ == "__main__":
    main()
