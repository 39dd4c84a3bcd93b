"""`kafka-features`: the features of a cluster with Kafka's flags and Kafka's output, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, kafka_access_options, or_controllers
from strandline.cli.cluster import feature_admin
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import KafkaCommand
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.client.flow.descriptions import FeaturesDescription

SERVER = "--bootstrap-server 127.0.0.1:9092"
metadata_option = click.option("--metadata", metavar="VERSION", help="The level of metadata.version, such as 4.3-IV0.")


@click.group(epilog=example(f"strandline kafka-features {SERVER} describe"))
@or_controllers(kafka_access_options())
@click.pass_context
def kafka_features(context: click.Context, access: Access) -> None:
    """Show and change the features of a cluster, with Kafka's flags and output."""
    context.obj = access


@kafka_features.command(cls=KafkaCommand, epilog=example(f"strandline kafka-features {SERVER} describe"))
@click.option("--node-id", type=int, help="The node to ask.  [default: any]")
@click.pass_obj
def describe(access: Access, node_id: int | None) -> None:
    """Show each feature."""
    if node_id is not None and node_id < 0:
        raise CommandRefused(f"Invalid node id {node_id}: must be non-negative.")
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        described = admin.describe_features(node_id)
    for line in describe_lines(described):
        echo(line)


def describe_lines(described: FeaturesDescription) -> list[str]:
    epoch = "-" if described.epoch is None else described.epoch
    lines = []
    for feature in described.features:
        low, high, level = (feature_admin.level_text(feature.name, each) for each in feature[1:])
        lines.append(
            f"Feature: {feature.name:<40}  SupportedMinVersion: {low:<15}  SupportedMaxVersion: {high:<15}  "
            f"FinalizedVersionLevel: {level:<15}  Epoch: {epoch}"
        )
    return lines


def _levels(
    operation: str, features: tuple[str, ...], release_version: str | None, metadata: str | None
) -> dict[str, int]:
    if metadata is None:
        return feature_admin.levels_of(operation, features, release_version)
    if release_version is not None:
        raise CommandRefused("Can not specify `release-version` with other feature flags.")
    echo(" `metadata` flag is deprecated and may be removed in a future release.")
    named = f"metadata.version={feature_admin.mapping(metadata)['metadata.version']}"
    return feature_admin.levels_of(operation, (named, *features))


@kafka_features.command(
    cls=KafkaCommand, epilog=example(f"strandline kafka-features {SERVER} upgrade --release-version 4.3")
)
@metadata_option
@feature_admin.release_option
@feature_admin.feature_option
@feature_admin.dry_run_option
@click.pass_obj
def upgrade(
    access: Access, metadata: str | None, release_version: str | None, features: tuple[str, ...], dry_run: bool
) -> None:
    """Raise the level of features."""
    levels = _levels(feature_admin.UPGRADE, features, release_version, metadata)
    feature_admin.change(access, feature_admin.UPGRADE, levels, unsafe=False, dry_run=dry_run)


@kafka_features.command(
    cls=KafkaCommand, epilog=example(f"strandline kafka-features {SERVER} downgrade --release-version 4.2 --dry-run")
)
@metadata_option
@feature_admin.release_option
@feature_admin.feature_option
@feature_admin.unsafe_option
@feature_admin.dry_run_option
@click.pass_obj
def downgrade(
    access: Access,
    metadata: str | None,
    release_version: str | None,
    features: tuple[str, ...],
    unsafe: bool,
    dry_run: bool,
) -> None:
    """Lower the level of features."""
    levels = _levels(feature_admin.DOWNGRADE, features, release_version, metadata)
    feature_admin.change(access, feature_admin.DOWNGRADE, levels, unsafe=unsafe, dry_run=dry_run)


@kafka_features.command(
    cls=KafkaCommand,
    epilog=example(f"strandline kafka-features {SERVER} disable --feature eligible.leader.replicas.version"),
)
@feature_admin.disabled_option
@feature_admin.unsafe_option
@feature_admin.dry_run_option
@click.pass_obj
def disable(access: Access, features: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Turn features off."""
    levels = feature_admin.levels_of(feature_admin.DISABLE, features)
    feature_admin.change(access, feature_admin.DISABLE, levels, unsafe=unsafe, dry_run=dry_run)


@kafka_features.command(
    "version-mapping",
    cls=KafkaCommand,
    epilog=example("strandline kafka-features version-mapping --release-version 4.2"),
)
@feature_admin.release_option
def version_mapping(release_version: str | None) -> None:
    """Show the level of each feature in a release. Needs no cluster."""
    for name, level in feature_admin.mapping(release_version).items():
        release = release_version or feature_admin.level_text(name, level)
        echo(f"{name}={level} ({release})" if name == "metadata.version" else f"{name}={level}")


@kafka_features.command(
    "feature-dependencies",
    cls=KafkaCommand,
    epilog=example("strandline kafka-features feature-dependencies --feature eligible.leader.replicas.version=1"),
)
@feature_admin.feature_option
def feature_dependencies(features: tuple[str, ...]) -> None:
    """Show what a level of a feature depends on. Needs no cluster."""
    if not features:
        raise click.UsageError("Missing option '--feature'.")
    for text in features:
        for line in dependency_lines(*feature_admin.dependencies(text)):
            echo(line)


def dependency_lines(name: str, level: int, needed: dict[str, int]) -> list[str]:
    if not needed:
        return [f"{_named(name, level)} has no dependencies."]
    return [f"{name}={level} requires:", *(f"    {_named(*each)}" for each in needed.items())]


def _named(name: str, level: int) -> str:
    release = f" ({feature_admin.level_text(name, level)})" if name == "metadata.version" else ""
    return f"{name}={level}{release}"
