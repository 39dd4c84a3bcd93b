"""`storage` and `kafka-storage`: formatting the log dirs of a node, and showing them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strandline.config.node import NodeConfig
    from strandline.metadata.initial_voters import InitialVoter

config_option = click.option(
    "--config", "-c", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The node's properties file."
)


@click.group(
    epilog=example(
        "strandline storage format --config server.properties --cluster-id $(strandline storage random-uuid)"
    )
)
def storage() -> None:
    """Format log dirs and show them."""


@click.group(
    epilog=example("strandline kafka-storage format -t $(strandline kafka-storage random-uuid) -c server.properties")
)
def kafka_storage() -> None:
    """Format log dirs and show them, with Kafka's flags."""


def _both(command: click.Command) -> click.Command:
    """Add the command to both groups, ours and Kafka's."""
    storage.add_command(command)
    kafka_storage.add_command(command)
    return command


feature_option = click.option(
    "--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="A feature and its level; may be repeated."
)
release_option = click.option(
    "--release-version",
    "-r",
    metavar="VERSION",
    help="The release that sets the levels, 3.3-IV3 to 4.3-IV0.  [default: the newest]",
)


@_both
@click.command(
    "format", epilog=example("strandline storage format --config server.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg")
)
@config_option
@click.option("--cluster-id", "-t", required=True, metavar="ID", help="The cluster's id; the same on all its nodes.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip log dirs that are formatted instead of failing.")
@click.option("--standalone", "-s", is_flag=True, help="A dynamic quorum of this node alone.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="This node joins a dynamic quorum later.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY,…",
    help="A dynamic quorum of these controllers; the same on all its nodes.",
)
@release_option
@feature_option
@click.option("--add-scram", "-S", multiple=True, metavar="CREDENTIAL", help="Not supported yet.")
def format_(
    config: str,
    cluster_id: str,
    ignore_formatted: bool,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    release_version: str | None,
    features: tuple[str, ...],
    add_scram: tuple[str, ...],
) -> None:
    """Format the log dirs in a properties file for its node.

    A controller without controller.quorum.voters needs --standalone, --initial-controllers or --no-initial-controllers.
    """
    from strandline.ids import Uuid

    if add_scram:
        raise CommandRefused("--add-scram: SCRAM credentials are not supported yet")
    if standalone + no_initial_controllers + (initial_controllers is not None) > 1:
        raise click.UsageError("give one of --standalone, --no-initial-controllers and --initial-controllers")
    try:
        Uuid.parse(cluster_id)
    except ValueError as error:
        raise CommandRefused(f"--cluster-id {error}; `strandline storage random-uuid` prints one") from None
    node = _load(config)
    levels = _levels(release_version, features, dynamic_quorum=not node.quorum_voters)
    voters = _voters(node, standalone, no_initial_controllers, initial_controllers)
    _format(node, cluster_id, levels, voters, ignore_formatted)


def _levels(release: str | None, features: tuple[str, ...], *, dynamic_quorum: bool) -> dict[str, int]:
    """The initial feature levels of the cluster."""
    from strandline.metadata import features as table
    from strandline.metadata.records import METADATA_VERSION_4_3

    wanted = dict(_name_and_level(text) for text in features)
    kraft_version = wanted.setdefault(table.KRAFT_VERSION, int(dynamic_quorum))
    try:
        if table.METADATA_VERSION not in wanted:
            level = METADATA_VERSION_4_3 if release is None else table.metadata_version(release)
        elif release is None:
            level = wanted[table.METADATA_VERSION]
        else:
            raise CommandRefused("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
        levels = table.bootstrap_features(level, wanted)
    except table.UnknownFeature as error:
        raise CommandRefused(str(error)) from None
    if bool(kraft_version) != dynamic_quorum:
        raise CommandRefused(
            f"Cannot set kraft.version to {kraft_version}: it is 1 when controller.quorum.voters is empty and one of "
            "--standalone, --initial-controllers and --no-initial-controllers is given, and 0 otherwise."
        )
    return levels


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise CommandRefused(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name, int(level)
    except ValueError:
        raise CommandRefused(f"Can't parse feature=level string {text}: unable to parse {level} as a short.") from None


def _voters(node: NodeConfig, standalone: bool, no_initial: bool, initial: str | None) -> list[InitialVoter]:
    """The initial voters of a dynamic quorum, as far as the options name them."""
    import random

    from strandline.ids import Uuid
    from strandline.metadata.initial_voters import InitialVoter, parse

    if node.quorum_voters and (standalone or initial is not None):
        raise CommandRefused(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. "
            "If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if standalone:
        if not node.controller:
            raise CommandRefused("You can only use --standalone on a controller.")
        listener = next(each for each in node.listeners if each.name == node.controller_listener_names[0])
        directory_id = Uuid.draw(random.SystemRandom())
        return [InitialVoter(node.node_id, listener.advertised_host, listener.advertised_port, directory_id)]
    if initial is not None:
        try:
            return parse(initial)
        except ValueError as error:
            raise CommandRefused(f"--initial-controllers: {error}") from None
    if node.controller and not node.quorum_voters and not no_initial:
        raise CommandRefused(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return []


def _format(
    node: NodeConfig, cluster_id: str, levels: dict[str, int], voters: list[InitialVoter], ignore_formatted: bool
) -> None:
    import random

    from strandline.metadata.features import METADATA_VERSION, METADATA_VERSIONS
    from strandline.metadata.initial_voters import voters_record
    from strandline.node.log_dirs import StorageError, cluster_id_of, format_dirs
    from strandline.runtime.clock import SystemClock
    from strandline.runtime.disk import FileDisk

    disk = FileDisk()
    paths = _log_dirs(node)
    try:
        formatted = [path for path in paths if cluster_id_of(disk, path) is not None]
        if formatted and not ignore_formatted:
            raise CommandRefused(
                f"Log directory {formatted[0]} is already formatted. "
                "Use --ignore-formatted to ignore this directory and format the others."
            )
        fresh = format_dirs(
            disk,
            paths,
            cluster_id,
            node.node_id,
            random.SystemRandom(),
            features=levels,
            voters=voters_record(voters, node.controller_listener_names[0]) if voters else None,
            metadata_log_dir=node.metadata_log_dir,
            timestamp_ms=SystemClock().wall_ms(),
        )
    except StorageError as error:
        raise CommandRefused(str(error)) from None
    finally:
        disk.close()
    if not fresh:
        echo("All of the log directories are already formatted.")
        return
    echo(f"Bootstrap metadata: {_bootstrap_text(levels)}")
    metadata_kind = "metadata directory"
    if voters:
        is_voter = node.node_id in {voter.id for voter in voters}
        metadata_kind = "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"
    for path in fresh:
        kind = metadata_kind if path == node.metadata_log_dir else "data directory"
        echo(f"Formatting {kind} {path} with metadata.version {METADATA_VERSIONS[levels[METADATA_VERSION]]}.")


def _bootstrap_text(levels: dict[str, int]) -> str:
    records = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)"
        for name, level in levels.items()
    )
    level = levels["metadata.version"]
    return f"BootstrapMetadata(records=[{records}], metadataVersionLevel={level}, source=format command)"


@_both
@click.command("version-mapping", epilog=example("strandline storage version-mapping --release-version 4.2"))
@release_option
def version_mapping(release_version: str | None) -> None:
    """Show the level of each feature in a release."""
    from strandline.metadata import features as table
    from strandline.metadata.records import METADATA_VERSION_4_3

    newest = table.METADATA_VERSIONS[METADATA_VERSION_4_3]
    try:
        level = table.metadata_version(release_version or newest)
    except table.UnknownFeature as error:
        raise CommandRefused(str(error)) from None
    echo(f"metadata.version={level} ({release_version or newest})")
    for name in table.SUPPORTED:
        if name != table.METADATA_VERSION:
            echo(f"{name}={table.default_level(name, level)}")


@_both
@click.command(
    "feature-dependencies", epilog=example("strandline storage feature-dependencies --feature kraft.version=1")
)
@click.option(
    "--feature", "-f", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="May be repeated."
)
def feature_dependencies(features: tuple[str, ...]) -> None:
    """Show what a level of a feature depends on."""
    from strandline.metadata import features as table

    for name, level in map(_name_and_level, features):
        try:
            needed = table.dependencies(name, level)
        except table.UnknownFeature as error:
            raise CommandRefused(str(error)) from None
        title = _feature_text(name, level)
        echo(f"{title} requires:" if needed else f"{title} has no dependencies.")
        for other, least in needed.items():
            echo(f"    {_feature_text(other, least)}")


def _feature_text(name: str, level: int) -> str:
    from strandline.metadata.features import METADATA_VERSION, METADATA_VERSIONS

    return f"{name}={level} ({METADATA_VERSIONS[level]})" if name == METADATA_VERSION else f"{name}={level}"


@_both
@click.command("random-uuid", epilog=example("strandline storage random-uuid"))
def random_uuid() -> None:
    """Print a random id for a new cluster."""
    import random

    from strandline.ids import Uuid

    echo(str(Uuid.draw(random.SystemRandom())))


@_both
@click.command("info", epilog=example("strandline storage info --config server.properties"))
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(config: str, as_json: bool) -> int:
    """Show the log dirs in a properties file, and the cluster and node they belong to."""
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
        echo(f"Found metadata: {{{inner}}}\n")
    _print_list("Found problem:", "Found problems:", problems)
    return 1 if problems else 0


def _print_list(one: str, several: str, lines: Sequence[object]) -> None:
    if lines:
        echo(one if len(lines) == 1 else several)
        echo("".join(f"  {line}\n" for line in lines))


class LogDirReport(TypedDict):
    """A log dir as `storage info` reports it."""

    path: str
    found: bool
    meta: dict[str, str] | None
    problem: str | None


def _inspect(path: str) -> LogDirReport:
    meta_path = os.path.join(path, "meta.properties")
    row: LogDirReport = {"path": path, "found": os.path.isdir(path), "meta": None, "problem": None}
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
        # Formatting opens no listener, so one that needs --insecure is no reason to refuse.
        return NodeConfig.build(load(path, os.environ), insecure=True)
    except ConfigError as error:
        raise CommandRefused(str(error)) from None


def _log_dirs(node: NodeConfig) -> list[str]:
    """The log dirs, that of the metadata log first."""
    return list(dict.fromkeys((node.metadata_log_dir, *node.log_dirs)))
