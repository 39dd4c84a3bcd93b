"""`timeline`: what happened to the cluster and why, from all nodes, as one story."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from strandline.cli.access.options import Access
from strandline.cli.monitoring.endpoints import TIMEOUT_S, Place, Unreachable, get, get_all, places, sight_options
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example, is_terminal, note

if TYPE_CHECKING:
    from strandline.cli.monitoring.event_merging import Told

WAIT_MS = 10_000
"""How long a node holds a question for events that there are none of yet."""
RETRY_S = 1.0
GATHER_S = 0.3
"""News is held for so long, so that what other nodes say of the same moment is sorted in."""
QUEUE_MAX = 1000
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration_ms(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})([smhd])", value)
    if match is None:
        raise click.BadParameter(f"'{value}' is no duration; write it as 30s, 10m, 2h or 1d")
    return int(match[1]) * _UNITS_S[match[2]] * 1000


@click.command(
    epilog=example(
        "strandline timeline",
        "strandline timeline --follow --topic hello",
        "strandline timeline --since 10m --json --dir .strandline",
    )
)
@sight_options
@click.option("--follow", is_flag=True, help="Go on, and show what happens as it does, until Ctrl-C.")
@click.option("--topic", metavar="NAME", help="Only this topic, and what is of no topic: brokers and controllers.")
@click.option("--since", "since_ms", callback=_duration_ms, metavar="10m", help="Only what is no older than that.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def timeline(
    access: Access, directory: str | None, follow: bool, topic: str | None, since_ms: int | None, as_json: bool
) -> None:
    """Show elections, epochs, ISR changes, fencing, truncations and reassignments, each with its reason.

    Each node keeps its newest events in memory and serves them at its metrics.listener; what several of them tell is shown once.
    """
    from strandline.cli.monitoring.event_merging import Story

    where = places(access, directory)
    oldest_ms = 0 if since_ms is None else time.time_ns() // 1_000_000 - since_ms
    story = Story(topic, oldest_ms)
    if follow:
        _follow(where, story, as_json)
        return
    events, problems = _all_events(where)
    news = story.add(events)
    for event in news:
        _print(event, as_json)
    for node_id, problem in problems.items():
        note(f"node {node_id} {problem}")
    if not news:
        note("nothing is known from the nodes that answer" if problems else "nothing has happened")


def _all_events(where: Sequence[Place]) -> tuple[list[Told], dict[int, str]]:
    """Everything that the nodes still have."""
    from strandline.cli.monitoring.event_merging import told

    events: list[Told] = []
    problems: dict[int, str] = {}
    left = {place.node_id: (place, 0) for place in where}
    while left:
        since = {number for _, number in left.values()}
        for number in since:
            asked = [place for place, at in left.values() if at == number]
            answers, failed = get_all(asked, f"/events?since={number}")
            problems |= failed
            for node_id in failed:
                del left[node_id]
            for node_id, answer in answers.items():
                events += told(answer)
                if answer["events"]:
                    left[node_id] = (left[node_id][0], answer["last"])
                else:
                    del left[node_id]
    return events, problems


# Following


def _follow(where: Sequence[Place], story: Any, as_json: bool) -> None:
    from strandline.cli.terminal.interrupts import POLL_S, ctrl_c

    news: queue.Queue[list[Told]] = queue.Queue(QUEUE_MAX)
    for place in where:
        if place.port:
            threading.Thread(target=_listen, args=(place, news), daemon=True).start()
        else:
            note(f"node {place.node_id} {place.problem}")
    gathered: list[Told] = []
    show_at = 0.0
    with ctrl_c() as asked:
        while not asked.to_end:
            try:
                more = news.get(timeout=POLL_S)
                if not gathered:
                    show_at = time.monotonic() + GATHER_S
                gathered += more
            except queue.Empty:
                pass
            if gathered and time.monotonic() >= show_at:
                for event in story.add(gathered):
                    _print(event, as_json)
                gathered = []


def _listen(place: Place, news: queue.Queue[list[Told]]) -> None:
    """Ask one node for what is new, for ever; one that was started again is asked from its beginning."""
    from strandline.cli.monitoring.event_merging import told

    since, incarnation, is_gone = 0, None, False
    while True:
        try:
            answer = get(place, f"/events?since={since}&wait_ms={WAIT_MS}", TIMEOUT_S + WAIT_MS / 1000)
        except Unreachable as error:
            if not is_gone:
                note(f"node {place.node_id} {error}")
            is_gone = True
            time.sleep(RETRY_S)
            continue
        if is_gone:
            note(f"node {place.node_id} answers again")
            is_gone = False
        if incarnation not in (None, answer["incarnation_id"]) and since:
            since, incarnation = 0, answer["incarnation_id"]
            continue
        incarnation, since = answer["incarnation_id"], answer["last"]
        if answer["events"]:
            news.put(told(answer))


# Showing


def _print(event: Told, as_json: bool) -> None:
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


def _where(event: Told) -> str:
    from strandline.cli.monitoring.event_merging import OF_ONE_NODE

    where = "" if event.topic is None else event.topic
    if event.partition is not None:
        where += f"-{event.partition}"
    if event.kind in OF_ONE_NODE:
        where = f"{where} on node {event.node_id}".strip()
    return f"{where:<20}" if where else " " * 20


def _what(event: Told) -> str:
    facts = event.facts
    words = []
    if "from" in facts and "to" in facts:
        words.append(f"{_name(facts['from'])} → {_name(facts['to'])}")
    if event.kind.startswith("isr") and "isr" in facts:
        words.append(f"ISR {_ids(facts['isr'])}")
    if event.kind == "elr changed":
        words.append(f"ELR {_ids(facts.get('elr', ()))}")
    if event.partition is not None and "leader_epoch" in facts:
        words.append(f"epoch {facts['leader_epoch']}")
    told = ", ".join(words)
    return f"{told}: {event.reason}" if told else event.reason


def _name(broker: int) -> str:
    return "none" if broker < 0 else str(broker)


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas)) or "-"
