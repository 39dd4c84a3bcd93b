"""`features`: the features of a cluster and their levels: showing and changing them."""

from __future__ import annotations

import click

from strandline.cli.access.options import Access, access_options, or_controllers
from strandline.cli.cluster import feature_admin
from strandline.cli.terminal.output import example, json_option, print_json, print_table

features_options = or_controllers(access_options)


@click.group(epilog=example("strandline features describe", "strandline features upgrade --release-version 4.3-IV0"))
def features() -> None:
    """Show and change the features of a cluster."""


@features.command(epilog=example("strandline features describe --json"))
@features_options
@click.option("--node-id", type=click.IntRange(0), help="The node to ask.  [default: any]")
@json_option
def describe(access: Access, node_id: int | None, as_json: bool) -> None:
    """Show each feature: the levels that the node supports, and the finalized level of the cluster."""
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        described = admin.describe_features(node_id)
    if as_json:
        print_json([feature._asdict() | {"epoch": described.epoch} for feature in described.features])
        return
    print_table(
        ("feature", "from", "to", "level", "epoch"),
        [
            (
                feature.name,
                *(feature_admin.level_text(feature.name, level) for level in feature[1:]),
                described.epoch,
            )
            for feature in described.features
        ],
    )


@features.command(epilog=example("strandline features upgrade --feature eligible.leader.replicas.version=1"))
@features_options
@feature_admin.feature_option
@feature_admin.release_option
@feature_admin.dry_run_option
def upgrade(access: Access, features: tuple[str, ...], release_version: str | None, dry_run: bool) -> None:
    """Raise the level of features."""
    levels = feature_admin.levels_of(feature_admin.UPGRADE, features, release_version)
    feature_admin.change(access, feature_admin.UPGRADE, levels, unsafe=False, dry_run=dry_run)


@features.command(epilog=example("strandline features downgrade --release-version 4.2 --dry-run"))
@features_options
@feature_admin.feature_option
@feature_admin.release_option
@feature_admin.unsafe_option
@feature_admin.dry_run_option
def downgrade(
    access: Access, features: tuple[str, ...], release_version: str | None, unsafe: bool, dry_run: bool
) -> None:
    """Lower the level of features."""
    levels = feature_admin.levels_of(feature_admin.DOWNGRADE, features, release_version)
    feature_admin.change(access, feature_admin.DOWNGRADE, levels, unsafe=unsafe, dry_run=dry_run)


@features.command(epilog=example("strandline features disable --feature eligible.leader.replicas.version"))
@features_options
@feature_admin.disabled_option
@feature_admin.unsafe_option
@feature_admin.dry_run_option
def disable(access: Access, features: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Turn features off."""
    levels = feature_admin.levels_of(feature_admin.DISABLE, features)
    feature_admin.change(access, feature_admin.DISABLE, levels, unsafe=unsafe, dry_run=dry_run)


@features.command("version-mapping", epilog=example("strandline features version-mapping --release-version 4.2"))
@feature_admin.release_option
@json_option
def version_mapping(release_version: str | None, as_json: bool) -> None:
    """Show the level of each feature in a release. Needs no cluster."""
    levels = feature_admin.mapping(release_version)
    if as_json:
        print_json(levels)
        return
    rows = [(name, level, feature_admin.level_text(name, level)) for name, level in levels.items()]
    print_table(
        ("feature", "level", "release"), [(*row[:2], row[2] if row[2] != str(row[1]) else None) for row in rows]
    )


@features.command(
    "feature-dependencies",
    epilog=example("strandline features feature-dependencies --feature eligible.leader.replicas.version=1"),
)
@feature_admin.feature_option
@json_option
def feature_dependencies(features: tuple[str, ...], as_json: bool) -> None:
    """Show what a level of a feature depends on. Needs no cluster."""
    if not features:
        raise click.UsageError("Missing option '--feature'.")
    found = [feature_admin.dependencies(text) for text in features]
    if as_json:
        print_json([{"feature": name, "level": level, "requires": needed} for name, level, needed in found])
        return
    rows = [
        (name, level, ", ".join(f"{other}={least}" for other, least in needed.items()) or None)
        for name, level, needed in found
    ]
    print_table(("feature", "level", "requires"), rows)
