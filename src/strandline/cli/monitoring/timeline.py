"""`timeline`: what happened in the cluster and why: the events of all nodes, merged."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access
from strandline.cli.monitoring.endpoints import (
    TIMEOUT_S,
    MonitoringEndpoint,
    NodeUnreachable,
    endpoints_of,
    get,
    get_all,
    monitoring_options,
)
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example, is_terminal, note

if TYPE_CHECKING:
    from strandline.cli.monitoring.event_merging import EventFact, EventMerger, NodeEvent

WAIT_MS = 10_000
"""How long a node may hold a request until there are events."""
RETRY_S = 1.0
GATHER_S = 0.3
"""How long events are held back, so that those of other nodes from the same moment are sorted in."""
QUEUE_MAX = 1000
NO_BROKER = -1
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration_ms(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})([smhd])", value)
    if match is None:
        raise click.BadParameter(f"'{value}' is not a duration; write it as 30s, 10m, 2h or 1d")
    return int(match[1]) * _UNITS_S[match[2]] * 1000


@click.command(
    epilog=example(
        "strandline timeline",
        "strandline timeline --follow --topic hello",
        "strandline timeline --since 10m --json --dir .strandline",
    )
)
@monitoring_options
@click.option("--follow", is_flag=True, help="Keep showing new events, until Ctrl-C.")
@click.option("--topic", metavar="NAME", help="Only events of this topic, and of brokers and controllers.")
@click.option("--since", "since_ms", callback=_duration_ms, metavar="10m", help="Only events that are not older.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def timeline(
    access: Access, directory: str | None, follow: bool, topic: str | None, since_ms: int | None, as_json: bool
) -> None:
    """Show elections, epochs, ISR changes, fencing, truncations and reassignments, each with its reason.

    Each node keeps its newest events in memory and serves them at its metrics.listener; an event that several nodes report is
    shown once.
    """
    from strandline.cli.monitoring.event_merging import EventMerger

    endpoints = endpoints_of(access, directory)
    oldest_ms = 0 if since_ms is None else time.time_ns() // 1_000_000 - since_ms
    merger = EventMerger(topic, oldest_ms)
    if follow:
        _follow(endpoints, merger, as_json)
        return
    events, problems = _all_events(endpoints)
    shown_events = merger.add(events)
    for event in shown_events:
        _print(event, as_json)
    for node_id, problem in problems.items():
        note(f"node {node_id} {problem}")
    if not shown_events:
        note("the nodes that answer know of no events" if problems else "no events")


def _all_events(endpoints: Sequence[MonitoringEndpoint]) -> tuple[list[NodeEvent], dict[int, str]]:
    """All events that the nodes still keep."""
    from strandline.cli.monitoring.event_merging import events_in

    events: list[NodeEvent] = []
    problems: dict[int, str] = {}
    left = {endpoint.node_id: (endpoint, 0) for endpoint in endpoints}
    while left:
        since = {number for _, number in left.values()}
        for number in since:
            due = [endpoint for endpoint, at in left.values() if at == number]
            answers, failed = get_all(due, f"/events?since={number}")
            problems |= failed
            for node_id in failed:
                del left[node_id]
            for node_id, answer in answers.items():
                events += events_in(answer)
                if answer["events"]:
                    left[node_id] = (left[node_id][0], answer["last"])
                else:
                    del left[node_id]
    return events, problems


# Following


def _follow(endpoints: Sequence[MonitoringEndpoint], merger: EventMerger, as_json: bool) -> None:
    from strandline.cli.terminal.interrupts import POLL_S, ctrl_c

    new_events: queue.Queue[list[NodeEvent]] = queue.Queue(QUEUE_MAX)
    is_over = threading.Event()
    for endpoint in endpoints:
        if endpoint.port:
            threading.Thread(target=_listen, args=(endpoint, new_events, is_over), daemon=True).start()
        else:
            note(f"node {endpoint.node_id} {endpoint.problem}")
    gathered: list[NodeEvent] = []
    show_at = 0.0
    try:
        with ctrl_c() as stop:
            while not stop.requested:
                try:
                    more = new_events.get(timeout=POLL_S)
                    if not gathered:
                        show_at = time.monotonic() + GATHER_S
                    gathered += more
                except queue.Empty:
                    pass
                if gathered and time.monotonic() >= show_at:
                    for event in merger.add(gathered):
                        _print(event, as_json)
                    gathered = []
    finally:
        is_over.set()


def _listen(endpoint: MonitoringEndpoint, new_events: queue.Queue[list[NodeEvent]], is_over: threading.Event) -> None:
    """Ask one node for new events, until it is over; after its restart, from the beginning."""
    from strandline.cli.monitoring.event_merging import events_in

    since, incarnation, is_gone = 0, None, False
    while not is_over.is_set():
        try:
            answer = get(endpoint, f"/events?since={since}&wait_ms={WAIT_MS}", TIMEOUT_S + WAIT_MS / 1000)
        except NodeUnreachable as error:
            if not is_gone and not is_over.is_set():
                note(f"node {endpoint.node_id} {error}")
            is_gone = True
            is_over.wait(RETRY_S)
            continue
        if is_over.is_set():
            return
        if is_gone:
            note(f"node {endpoint.node_id} answers again")
            is_gone = False
        if incarnation not in (None, answer["incarnation_id"]) and since:
            since, incarnation = 0, answer["incarnation_id"]
            continue
        incarnation, since = answer["incarnation_id"], answer["last"]
        if answer["events"]:
            _put(new_events, events_in(answer), is_over)


def _put(new_events: queue.Queue[list[NodeEvent]], events: list[NodeEvent], is_over: threading.Event) -> None:
    """Wait for room, but not for a reader that has left."""
    while not is_over.is_set():
        try:
            new_events.put(events, timeout=RETRY_S)
            return
        except queue.Full:
            pass


# Showing


def _print(event: NodeEvent, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(event.as_json()))
        return
    line = [_time(event.wall_ms), f"{event.kind:<21}", shown(_where(event)), shown(_what(event))]
    if is_terminal():
        line[0] = click.style(line[0], dim=True)
        line[1] = click.style(line[1], fg=_COLOURS.get(event.kind), bold=event.kind in _COLOURS)
    click.echo("  ".join(part for part in line if part))


_COLOURS = {
    "leader elected": "green",
    "leader lost": "red",
    "unclean election": "red",
    "isr shrunk": "yellow",
    "isr expanded": "green",
    "fenced": "red",
    "unfenced": "green",
    "truncated": "yellow",
    "dir failed": "red",
    "corrupt batch": "red",
}


def _time(wall_ms: int) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(wall_ms / 1000))}.{wall_ms % 1000:03d}"


def _where(event: NodeEvent) -> str:
    from strandline.cli.monitoring.event_merging import OF_ONE_NODE

    where = "" if event.topic is None else event.topic
    if event.partition is not None:
        where += f"-{event.partition}"
    if event.kind in OF_ONE_NODE:
        where = f"{where} on node {event.node_id}".strip()
    return f"{where:<20}" if where else " " * 20


def _what(event: NodeEvent) -> str:
    facts = event.facts
    words = []
    if "from" in facts and "to" in facts:
        words.append(f"{_name(facts['from'])} → {_name(facts['to'])}")
    if event.kind.startswith("isr") and "isr" in facts:
        words.append(f"ISR {_ids(facts['isr'])}")
    if event.kind == "elr changed":
        words.append(f"ELR {_ids(facts.get('elr'))}")
    if event.partition is not None and "leader_epoch" in facts:
        words.append(f"epoch {facts['leader_epoch']}")
    summary = ", ".join(words)
    return f"{summary}: {event.reason}" if summary else event.reason


def _name(broker: EventFact) -> str:
    return "none" if broker == NO_BROKER else str(broker)


def _ids(replicas: EventFact) -> str:
    return (",".join(map(str, replicas)) if isinstance(replicas, list) else "") or "-"
