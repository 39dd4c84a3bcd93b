"""`python -m bench.attacks`: an honest client beside each attack, as figures.

One node on loopback; the attack in a process of its own; 20 connections with 200 requests per second together. Reported: how
long these wait (p50, p99, the worst), how many of them failed, what memory the node takes at most meanwhile and a while after, and
whether the watchdog closed connections.

Always true: nothing is asserted here (tests/system/test_attacks_*.py does that); every attack is undone before the next one.
To add one: a list of `Attack`s, as in `bench/connection_attacks.py`, and its name in `ATTACKS`.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import click
import trustme
from rich.console import Console
from rich.table import Table
from tests.system.heavy_requests import TOPIC as HEAVY_TOPIC
from tests.system.server import Server, format_data, running

from bench.connection_attacks import ATTACKS as OF_CONNECTIONS
from bench.connection_attacks import LARGE_RECORD_BYTES, LARGE_TOPIC, Attack, Target
from bench.honest_client import RATE_PER_S, TOPIC, ask
from bench.kafka_cluster import free_ports
from bench.processes import is_running, resident_mb
from bench.raw_peer import RawPeer, batch, create_topic, produced
from bench.request_attacks import ATTACKS as OF_REQUESTS

ATTACKS: list[Attack] = [*OF_CONNECTIONS, *OF_REQUESTS]
SECONDS = 8.0
BEGIN_S_MAX = 60.0
AFTER_S = 3.0
WATCH_S = 0.2
TOPICS, LARGE_RECORDS = 50, 70
CONNECTIONS_MAX = 10_500
STALLED_MS = 3_000
"""As short as this the time limits show within the seconds of one attack."""
P99_MS_MAX, MEMORY_MIB_MAX = 200.0, 1024.0
BITE = "stood still"


@dataclass(frozen=True, slots=True)
class Figures:
    name: str
    rule: str
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: int
    before_mib: float
    during_mib: float
    after_mib: float
    bites: int
    is_alive: bool


def _attack(attack: Attack, target: Target, begun: Event, stop: Event) -> None:
    """The life of the attacker's process."""
    with attack.begin(target):
        begun.set()
        stop.wait(SECONDS + BEGIN_S_MAX)


def measure(attack: Attack, server: Server, target: Target, seconds: float) -> Figures:
    pid = server.process.pid
    context = multiprocessing.get_context("spawn")
    begun, stop = context.Event(), context.Event()
    before_mib, bites = resident_mb([pid]), _bites(server)
    attacker = context.Process(target=_attack, args=(attack, target, begun, stop), daemon=True)
    attacker.start()
    with _watched(pid) as seen_mib:
        try:
            deadline = time.monotonic() + BEGIN_S_MAX
            while not begun.wait(WATCH_S) and attacker.is_alive() and time.monotonic() < deadline:
                pass
            answers = ask(server.port, seconds)
        finally:
            stop.set()
            attacker.join(BEGIN_S_MAX)
            if attacker.is_alive():
                attacker.kill()
    time.sleep(AFTER_S)
    return Figures(
        attack.name,
        attack.rule,
        answers.percentile_ms(0.5),
        answers.percentile_ms(0.99),
        answers.percentile_ms(1.0),
        len(answers.errors),
        before_mib,
        max(seen_mib),
        resident_mb([pid]),
        _bites(server) - bites,
        is_running(pid),
    )


@contextmanager
def _watched(pid: int) -> Iterator[list[float]]:
    """What memory a process has, looked at every now and then."""
    seen_mib, ended = [resident_mb([pid])], threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_S) and is_running(pid):
            seen_mib.append(resident_mb([pid]))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield seen_mib
    finally:
        ended.set()
        watching.join()


def _bites(server: Server) -> int:
    return server.log.read_text(errors="replace").count(BITE)


def _prepare(server: Server) -> None:
    peer = RawPeer(server.port)
    for name in (TOPIC, LARGE_TOPIC, HEAVY_TOPIC, *(f"other-{number}" for number in range(TOPICS))):
        code = create_topic(peer, name, 1 if name in (TOPIC, LARGE_TOPIC) else 4)
        if code:
            raise click.ClickException(f"{name} could not be created: error code {code}")
    large = batch(bytes(LARGE_RECORD_BYTES))
    for _ in range(LARGE_RECORDS):
        if code := produced(peer, LARGE_TOPIC, large):
            raise click.ClickException(f"{LARGE_TOPIC} could not be filled: error code {code}")
    peer.close()


def properties(directory: Path, tls_port: int, http_port: int) -> Mapping[str, str]:
    authority = trustme.CA()
    keystore = directory / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keystore))
    keystore.chmod(0o600)  # others must not read a key (SEC-H1)
    return {
        "listeners": f"SSL://127.0.0.1:{tls_port}",
        "ssl.keystore.location": str(keystore),
        "metrics.listener": f"127.0.0.1:{http_port}",
        "max.connections": str(CONNECTIONS_MAX),
        "socket.send.stalled.timeout.ms": str(STALLED_MS),
        "socket.receive.stalled.timeout.ms": str(STALLED_MS),
    }


@click.command()
@click.option("--only", help="Only attacks whose name or rule contains this.")
@click.option(
    "--seconds", type=click.FloatRange(1), default=SECONDS, show_default=True, help="How long each is watched."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(only: str | None, seconds: float, json_file: Path | None) -> None:
    """Measure what an honest client of one node notices of each attack."""
    console = Console(width=150)
    figures = []
    with tempfile.TemporaryDirectory(prefix="strandline-attacks-") as name:
        directory = Path(name)
        format_data(directory / "data")
        tls_port, http_port = free_ports(2)
        with running(directory, directory / "data", properties(directory, tls_port, http_port)) as server:
            _prepare(server)
            target = Target(server.port, tls_port, http_port)
            calm = Attack("nothing", "", _nothing)
            for attack in [calm, *(each for each in ATTACKS if only is None or only in f"{each.name} {each.rule}")]:
                with console.status(attack.name):
                    figures.append(measure(attack, server, target, seconds))
    console.print(_table(figures, seconds))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(each) for each in figures], indent=2) + "\n")


@contextmanager
def _nothing(target: Target) -> Iterator[None]:
    yield


def _table(figures: list[Figures], seconds: float) -> Table:
    table = Table(
        title=f"An honest client at {RATE_PER_S:g} requests/s beside each attack, {seconds:g} s "
        f"(wanted: p99 below {P99_MS_MAX:g} ms, memory below {MEMORY_MIB_MAX:g} MiB)"
    )
    for column in ("attack", "rule", "p50 ms", "p99 ms", "max ms", "errors", "MiB before", "during", "after", "bites"):
        table.add_column(column, justify="left" if column in ("attack", "rule") else "right")
    for each in figures:
        table.add_row(
            each.name,
            each.rule,
            *(f"{value:.1f}" for value in (each.p50_ms, each.p99_ms, each.max_ms)),
            str(each.errors),
            *(f"{value:.0f}" for value in (each.before_mib, each.during_mib, each.after_mib)),
            str(each.bites) if each.is_alive else "ended",
        )
    return table


if __name__ == "__main__":
    main()
