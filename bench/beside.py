"""`python -m bench.beside COMMIT`: this tree beside another commit of ours, and that commit beside itself.

Two clusters of the commit and one of this tree run at the same time and take the same loads in turn. How far the first two lie
apart is what the machine does by itself; a difference between the commit and this tree means something only beyond that.

Always true: the commit runs from a copy of its own, with the libraries of this tree; clusters and copy are gone at the end.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from confluent_kafka import KafkaException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.clusters import CannotStart, Cluster, strandline
from bench.load import PARTS, LoadFailed, Sample, Size, run_load
from bench.processes import resident_mb, settle
from bench.report import MEASURES, Measure

ROOT = Path(__file__).parents[1]
BEFORE, AGAIN, NOW = "before", "before, again", "now"
NAMES = (BEFORE, AGAIN, NOW)
WARM_UPS = 1
START_ROUNDS = 5


@click.command()
@click.argument("commit")
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Nodes of each cluster.")
@click.option("--rf", type=click.IntRange(min=1), default=1, show_default=True, help="Replication factor.")
@click.option("--records", type=click.IntRange(min=1000), default=500_000, show_default=True, help="In one load.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Measured loads on each.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(commit: str, nodes: int, rf: int, records: int, rounds: int, json_file: Path | None) -> None:
    """Measure this tree beside COMMIT, and COMMIT beside itself."""
    console = Console()
    size = Size(records, records * 2 // 5 if rf == 1 else records // 5, 2000, replication_factor=rf)
    try:
        with _source_of(commit) as before:
            values = _measure({BEFORE: before, AGAIN: before, NOW: ROOT / "src"}, nodes, size, rounds, console)
    except (CannotStart, LoadFailed, KafkaException, OSError, subprocess.CalledProcessError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    console.print(_table(values))
    if json_file is not None:
        json_file.write_text(json.dumps(values, indent=2) + "\n")


@contextlib.contextmanager
def _source_of(commit: str) -> Iterator[Path]:
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="strandline-beside-") as directory:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(directory, filter="data")
        source = Path(directory) / "src"
        # As after an installation: the first start should not compile.
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(source)], check=True)
        yield source


def _measure(
    sources: Mapping[str, Path], nodes: int, size: Size, rounds: int, console: Console
) -> dict[str, dict[str, list[float]]]:
    values: dict[str, dict[str, list[float]]] = {name: {measure.key: [] for measure in MEASURES} for name in NAMES}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with contextlib.ExitStack() as stack, Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("start", total=((WARM_UPS + rounds) * PARTS + START_ROUNDS) * len(NAMES))
        for turn in range(START_ROUNDS):
            for name in _order(turn):
                progress.update(bar, advance=1, description=f"start {turn + 1}, {name}")
                with strandline(nodes, source=sources[name]) as cluster:
                    values[name]["start_s"].append(cluster.start_s)
        clusters: dict[str, Cluster] = {
            name: stack.enter_context(strandline(nodes, source=sources[name])) for name in NAMES
        }
        pids = [pid for cluster in clusters.values() for pid in cluster.pids]
        for turn in range(WARM_UPS + rounds):
            for name in _order(turn):

                def step(part: str, title: str = f"round {turn}, {name}") -> None:
                    progress.update(bar, advance=1, description=f"{title}: {part}")
                    settle(pids, size.records * 1000 * size.replication_factor)

                sample = run_load(clusters[name], size, step)
                if turn >= WARM_UPS:
                    _keep(values[name], sample, clusters[name])
    return values


def _order(turn: int) -> Sequence[str]:
    """No contender always comes first, or after the same one."""
    shift = turn % len(NAMES)
    order = NAMES[shift:] + NAMES[:shift]
    return order if turn // len(NAMES) % 2 == 0 else order[::-1]


def _keep(values: dict[str, list[float]], sample: Sample, cluster: Cluster) -> None:
    for key, value in asdict(sample).items():
        values[key].append(value)
    values["resident_mb"].append(resident_mb(cluster.pids))


def _table(values: Mapping[str, Mapping[str, list[float]]]) -> Table:
    result = Table(title="medians, and the range of the commit's own samples")
    for heading in ("", "unit"):
        result.add_column(heading)
    for heading in (*NAMES, "range", "now/before", ""):
        result.add_column(heading, justify="right")
    for measure in MEASURES:
        of = {name: values[name][measure.key] for name in NAMES}
        medians = {name: statistics.median(each) for name, each in of.items()}
        own = sorted(of[BEFORE] + of[AGAIN])
        ratio = medians[NOW] / statistics.median(own)
        verdict = "inside" if own[0] <= medians[NOW] <= own[-1] else "[bold]outside[/]"
        shown = [_number(measure, medians[name]) for name in NAMES]
        span = f"{_number(measure, own[0])} - {_number(measure, own[-1])}"
        result.add_row(measure.label, measure.unit, *shown, span, f"{ratio:.2f}", verdict)
    return result


def _number(measure: Measure, value: float) -> str:
    return f"{value:,.{measure.digits}f}"


if __name__ == "__main__":
    main()
