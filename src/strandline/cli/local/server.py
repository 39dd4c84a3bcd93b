"""`server`: one node in the foreground."""

from __future__ import annotations

import os

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.output import example

INSECURE = "Allow a PLAINTEXT listener that other machines reach, and a TLS key that every user of this one can read."

LEVELS = ("debug", "info", "warning", "error")


def run(
    path: str, overrides: tuple[str, ...], insecure: bool, level: str = "info", cluster_id: str | None = None
) -> None:
    from strandline.runtime.server import ServerError, run_node

    try:
        run_node(path, overrides, cluster_id=cluster_id, insecure=insecure, level=level, environment=os.environ)
    except ServerError as error:
        raise CommandRefused(str(error)) from None


@click.command(
    epilog=example(
        "strandline storage format --config server.properties --cluster-id $(strandline storage random-uuid)",
        "strandline server server.properties --override log.retention.hours=24",
    )
)
@click.argument("file", type=click.Path(dir_okay=False), metavar="FILE.properties")
@click.option("--override", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("--insecure", is_flag=True, help=INSECURE)
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="The lowest level to log."
)
@click.option("--cluster-id", metavar="ID", help="Format log dirs that are not formatted yet, for this cluster.")
def server(file: str, override: tuple[str, ...], insecure: bool, log_level: str, cluster_id: str | None) -> None:
    """Run one node in the foreground, configured with Kafka's property names.

    Logs to stdout: text on a terminal, JSON otherwise. Ctrl-C or SIGTERM stops it cleanly; a second one ends it at once.
    """
    run(file, override, insecure, log_level, cluster_id)


@click.command(
    epilog=example("strandline kafka-server-start server.properties --override log.retention.hours=24"),
)
@click.argument("file", type=click.Path(dir_okay=False), metavar="server.properties")
@click.option("--override", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("--insecure", is_flag=True, help=INSECURE)
def kafka_server_start(file: str, override: tuple[str, ...], insecure: bool) -> None:
    """Run one node in the foreground: `strandline server` under Kafka's name."""
    run(file, override, insecure)
