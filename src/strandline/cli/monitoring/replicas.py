"""`replicas`: offsets, lag and state of every replica of a partition, on all brokers side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from strandline.cli.access.options import Access
from strandline.cli.monitoring.endpoints import MonitoringEndpoint, endpoints_of, get_all, monitoring_options
from strandline.cli.terminal.output import example, is_terminal, json_option, note, print_json, print_table
from strandline.escaping import escaped

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from strandline.cli.monitoring.replica_table import PartitionTable

WATCH_S = 1.0


@click.group(
    epilog=example("strandline replicas describe --topic hello", "strandline replicas describe --topic hello --watch")
)
def replicas() -> None:
    """Show the offsets and lag of every replica."""


@replicas.command(
    epilog=example(
        "strandline replicas describe",
        "strandline replicas describe --topic hello --partition 0 --watch",
        "strandline replicas describe --dir .strandline --json",
    )
)
@monitoring_options
@click.option("--topic", metavar="NAME", help="Only this topic.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Only this partition of each topic.")
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")
@json_option
def describe(
    access: Access, directory: str | None, topic: str | None, partition: int | None, watch: bool, as_json: bool
) -> None:
    """Show log start, high watermark, log end, lag and leader epoch of every replica, and which are in sync.

    Each broker is asked at its metrics.listener. The lag is the one that the leader measures; a broker that does not answer is
    shown as its leader sees it. OSR are out-of-sync replicas.
    """
    endpoints = endpoints_of(access, directory)
    wanted = {"topic": topic, "partition": partition}
    query = urlencode({name: value for name, value in wanted.items() if value is not None})
    path = f"/replicas?{query}" if query else "/replicas"
    if watch:
        _watch(endpoints, path, as_json)
        return
    found, problems = _look(endpoints, path)
    _print(found, problems, as_json)


def _look(endpoints: Sequence[MonitoringEndpoint], path: str) -> tuple[list[PartitionTable], dict[int, str]]:
    from strandline.cli.monitoring.replica_table import tables

    answers, problems = get_all(endpoints, path)
    return tables(answers), problems


def _print(found: list[PartitionTable], problems: Mapping[int, str], as_json: bool) -> None:
    if as_json:
        print_json({"partitions": [table.as_json() for table in found], "unreachable": _named(problems)})
        return
    if is_terminal():
        from rich.console import Console

        Console().print(_drawn(found, problems))
    else:
        from strandline.cli.monitoring.replica_table import HEADINGS, columns

        rows = [(table.topic, table.partition, *row) for table in found for row in columns(table.replicas)]
        print_table(("topic", "partition", *HEADINGS), rows, empty=_nothing(problems))
        for node_id, problem in problems.items():
            note(f"node {node_id} {problem}")


def _nothing(problems: Mapping[int, str]) -> str:
    return "the nodes that answer know of no replica" if problems else "there are no replicas to show"


def _named(problems: Mapping[int, str]) -> list[dict[str, object]]:
    return [{"node_id": node_id, "reason": problem} for node_id, problem in problems.items()]


def _watch(endpoints: Sequence[MonitoringEndpoint], path: str, as_json: bool) -> None:
    from strandline.cli.terminal.interrupts import POLL_S, ctrl_c

    with ctrl_c() as stop:
        if as_json or not is_terminal():
            while not stop.requested:
                _print(*_look(endpoints, path), as_json)
                _pause(lambda: stop.requested, POLL_S)
            return
        from rich.live import Live

        with Live(_drawn(*_look(endpoints, path)), auto_refresh=False, screen=False) as live:
            while not stop.requested:
                _pause(lambda: stop.requested, POLL_S)
                live.update(_drawn(*_look(endpoints, path)), refresh=True)


def _pause(stop_requested: Callable[[], bool], poll_s: float) -> None:
    until = time.monotonic() + WATCH_S
    while time.monotonic() < until and not stop_requested():
        time.sleep(poll_s)


def _drawn(found: list[PartitionTable], problems: Mapping[int, str]) -> Group:
    """For a terminal: a table for each partition, under a line with its leader and ISR."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Table | Text] = []
    for table in found:
        parts += [_title(table), _rows(table), Text("")]
    if not found:
        parts.append(Text(_nothing(problems), style="dim"))
    parts += [Text(escaped(f"node {node_id} {problem}"), style="yellow") for node_id, problem in problems.items()]
    return Group(*parts)


def _title(table: PartitionTable) -> Text:
    from rich.text import Text

    title = Text(escaped(f"{table.topic}-{table.partition}"), style="bold")
    leader = f"leader {table.leader}" if table.leader >= 0 else "no leader"
    title.append(f"  {leader}", style="green" if table.leader >= 0 else "red")
    title.append(f"  epoch {table.leader_epoch}.{table.partition_epoch}", style="dim")
    title.append(f"  ISR {_ids(table.isr)}")
    if table.osr:
        title.append(f"  OSR {_ids(table.osr)}", style="red")
    if table.elr:
        title.append(f"  ELR {_ids(table.elr)}", style="yellow")
    return title


def _rows(table: PartitionTable) -> Table:
    from rich.table import Table
    from rich.text import Text

    from strandline.cli.monitoring.replica_table import HEADINGS, columns

    drawn = Table(box=None, pad_edge=True, header_style="dim")
    for heading in HEADINGS:
        drawn.add_column(heading, justify="left" if heading in ("role", "in sync", "caught up") else "right")
    for row in columns(table.replicas):
        drawn.add_row(*(Text("-" if value is None else str(value), style=_STYLES.get(value, "")) for value in row))
    return drawn


_STYLES: dict[object, str] = {"leader": "green", "OSR": "red", "offline": "red", "unreachable": "yellow"}


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas)) or "-"
