"""`storage` and `kafka-storage`: make directories the log dirs of a node, and look at them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from strandline.cli.errors import Refused
from strandline.cli.output import example, print_json

if TYPE_CHECKING:
    from strandline.config.node import NodeConfig

config_option = click.option(
    "--config", "-c", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The node's properties file."
)


@click.group(
    epilog=example(
        "strandline storage format --config server.properties --cluster-id $(strandline storage random-uuid)"
    )
)
def storage() -> None:
    """Format log dirs and look at them."""


@click.group(
    epilog=example("strandline kafka-storage format -t $(strandline kafka-storage random-uuid) -c server.properties")
)
def kafka_storage() -> None:
    """Format log dirs and look at them, with Kafka's flags."""


def _both(command: click.Command) -> click.Command:
    """The same command under our name and Kafka's."""
    storage.add_command(command)
    kafka_storage.add_command(command)
    return command


@_both
@click.command(
    "format", epilog=example("strandline storage format --config server.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg")
)
@config_option
@click.option("--cluster-id", "-t", required=True, metavar="ID", help="The cluster's id; the same on all its nodes.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip log dirs that are formatted instead of failing.")
@click.option("--standalone", "-s", is_flag=True, help="A quorum of this node alone.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="No voters but those of controller.quorum.voters.")
@click.option("--initial-controllers", "-I", metavar="ID@HOST:PORT:DIRECTORY,…", hidden=True)
def format_(
    config: str,
    cluster_id: str,
    ignore_formatted: bool,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
) -> None:
    """Make the log dirs of a properties file usable by its node.

    A controller without controller.quorum.voters needs --standalone.
    """
    import random

    from strandline.ids import Uuid
    from strandline.metadata.records import METADATA_VERSION_4_3
    from strandline.node.log_dirs import StorageError, cluster_id_of, format_dirs
    from strandline.node.metadata_log import BOOTSTRAP_FEATURES
    from strandline.runtime.disk import FileDisk

    try:
        Uuid.parse(cluster_id)
    except ValueError as error:
        raise Refused(f"--cluster-id {error}; `strandline storage random-uuid` prints one") from None
    node = _load(config)
    _check_quorum(node, standalone, no_initial_controllers, initial_controllers)
    disk = FileDisk()
    paths = _log_dirs(node)
    try:
        formatted = [path for path in paths if cluster_id_of(disk, path) is not None]
        if formatted and not ignore_formatted:
            raise Refused(
                f"Log directory {formatted[0]} is already formatted. "
                "Use --ignore-formatted to ignore this directory and format the others."
            )
        fresh = format_dirs(disk, paths, cluster_id, node.node_id, random.SystemRandom())
    except StorageError as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    if not fresh:
        click.echo("All of the log directories are already formatted.")
    version = {METADATA_VERSION_4_3: "4.3-IV0"}[BOOTSTRAP_FEATURES["metadata.version"]]
    voter = "dynamic metadata voter" if standalone else "metadata"
    for path in fresh:
        kind = voter if path == node.metadata_log_dir else "data"
        click.echo(f"Formatting {kind} directory {path} with metadata.version {version}.")


def _check_quorum(node: NodeConfig, standalone: bool, no_initial: bool, initial: str | None) -> None:
    """Refuse a quorum that would not come about: a node begins as the only voter, with a directory id of its own."""
    if standalone + no_initial + (initial is not None) > 1:
        raise click.UsageError("give one of --standalone, --no-initial-controllers and --initial-controllers")
    if initial is not None:
        raise Refused(
            "--initial-controllers: voters with directory ids of your choice are not there yet; --standalone makes a quorum "
            "of this node alone, controller.quorum.voters a fixed one"
        )
    if standalone and not node.controller:
        raise Refused("--standalone: this node is no controller (process.roles), so it cannot be a quorum")
    if standalone and node.quorum_voters:
        raise Refused(
            "--standalone: controller.quorum.voters names the quorum already; remove one of the two "
            "(controller.quorum.bootstrap.servers goes with --standalone)"
        )
    if node.controller and not node.quorum_voters and not standalone:
        if no_initial:
            raise Refused("--no-initial-controllers: a controller cannot join a quorum later yet; use --standalone")
        raise Refused(
            "controller.quorum.voters is not set, so who votes has to be said here: --standalone for a quorum of one"
        )


@_both
@click.command("random-uuid", epilog=example("strandline storage random-uuid"))
def random_uuid() -> None:
    """Print a random id for a new cluster."""
    import random

    from strandline.ids import Uuid

    click.echo(str(Uuid.draw(random.SystemRandom())))


@_both
@click.command("info", epilog=example("strandline storage info --config server.properties"))
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(config: str, as_json: bool) -> int:
    """Show the log dirs of a properties file and whose they are."""
    rows = [_inspect(path) for path in sorted(_log_dirs(_load(config)))]
    problems = [row["problem"] for row in rows if row["problem"]]
    metas = [row["meta"] for row in rows if row["meta"]]
    for key, name in (("cluster.id", "cluster IDs"), ("node.id", "node IDs")):
        if len({meta.get(key) for meta in metas}) > 1:
            problems.append(f"Mismatched {name} between storage directories.")
    if as_json:
        print_json({"directories": rows, "problems": problems})
        return 1 if problems else 0
    found = [row["path"] for row in rows if row["found"]]
    _print_list("Found log directory:", "Found log directories:", found)
    if metas:
        inner = ", ".join(f"{key}={value}" for key, value in sorted(metas[0].items()))
        click.echo(f"Found metadata: {{{inner}}}\n")
    _print_list("Found problem:", "Found problems:", problems)
    return 1 if problems else 0


def _print_list(one: str, several: str, lines: list[Any]) -> None:
    if lines:
        click.echo(one if len(lines) == 1 else several)
        click.echo("".join(f"  {line}\n" for line in lines))


def _inspect(path: str) -> dict[str, Any]:
    meta_path = os.path.join(path, "meta.properties")
    row: dict[str, Any] = {"path": path, "found": os.path.isdir(path), "meta": None, "problem": None}
    if not os.path.exists(path):
        row["problem"] = f"{path} does not exist"
    elif not row["found"]:
        row["problem"] = f"{path} is not a directory"
    elif not os.path.exists(meta_path):
        row["problem"] = f"{path} is not formatted."
    else:
        from javaproperties import loads

        with open(meta_path, encoding="iso-8859-1") as file:
            row["meta"] = loads(file.read())
    return row


def _load(path: str) -> NodeConfig:
    from strandline.config.errors import ConfigError
    from strandline.config.node import NodeConfig
    from strandline.config.properties import load

    try:
        # Formatting listens on nothing, so a listener that only --insecure would allow is no reason to refuse.
        return NodeConfig.build(load(path, os.environ), insecure=True)
    except ConfigError as error:
        raise Refused(str(error)) from None


def _log_dirs(node: NodeConfig) -> list[str]:
    """The one with the metadata log first."""
    return list(dict.fromkeys((node.metadata_log_dir, *node.log_dirs)))
