"""What `features` and `kafka-features` share: parsing feature levels, and changing them.

Always true: a feature is named once; each feature that could not be changed is reported, and then the command fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access
from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.escaping import echo

if TYPE_CHECKING:
    from strandline.errors import KafkaError

UPGRADE, DOWNGRADE, DISABLE = "upgrade", "downgrade", "disable"

feature_option = click.option(
    "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature and its level; may be repeated."
)
disabled_option = click.option(
    "--feature", "features", multiple=True, metavar="NAME", help="A feature to turn off; may be repeated."
)
release_option = click.option(
    "--release-version", metavar="VERSION", help="All features as they are in this release, such as 4.3-IV0."
)
unsafe_option = click.option("--unsafe", is_flag=True, help="Allow it even if metadata is lost.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Check whether it is possible, and change nothing.")


def parse_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise CommandRefused(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level.strip())
    except ValueError:
        number = 1 << 15
    if not -(1 << 15) <= number < 1 << 15:
        raise CommandRefused(f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short.")
    return name.strip(), number


def levels_of(operation: str, features: Sequence[str], release: str | None = None) -> dict[str, int]:
    """The requested level of each feature."""
    if release is not None:
        if features:
            raise CommandRefused("Can not specify `release-version` with other feature flags.")
        return _release_levels(operation, release)
    levels: dict[str, int] = {}
    for text in features:
        name, level = (text, 0) if operation == DISABLE else parse_level(text)
        if name in levels:
            raise CommandRefused(f"Feature {name} was specified more than once.")
        levels[name] = level
    return levels


def _release_levels(operation: str, release: str) -> dict[str, int]:
    from strandline.metadata import features

    try:
        metadata_version = features.metadata_version(release)
    except features.UnknownFeature as error:
        raise CommandRefused(str(error)) from None
    levels = {name: features.default_level(name, metadata_version) for name in features.SUPPORTED}
    # A feature that the release does not have is not upgraded to level 0.
    return {name: level for name, level in levels.items() if level or operation != UPGRADE}


def change(access: Access, operation: str, levels: dict[str, int], *, unsafe: bool, dry_run: bool) -> None:
    """Request these levels and print the result for each feature."""
    if not levels:
        raise CommandRefused(f"You must specify at least one feature to {operation}")
    from strandline.cli.access.connection import connect_admin
    from strandline.wire.feature_upgrades import FeatureUpgradeType

    downgrade = FeatureUpgradeType.UNSAFE_DOWNGRADE if unsafe else FeatureUpgradeType.SAFE_DOWNGRADE
    with connect_admin(access) as admin:
        answers = admin.update_features(
            levels, FeatureUpgradeType.UPGRADE if operation == UPGRADE else downgrade, validate_only=dry_run
        )
    for line in change_lines(operation, levels, answers, dry_run):
        echo(line)
    failures = sum(error is not None for error in answers.values())
    if failures:
        raise CommandRefused(f"{failures} out of {len(levels)} operation(s) failed.")


def change_lines(
    operation: str, levels: dict[str, int], answers: Mapping[str, KafkaError | None], dry_run: bool
) -> list[str]:
    """A line for each feature, in Kafka's words."""
    lines = []
    for name in sorted(levels):
        error = answers[name]
        target = "" if operation == DISABLE else f" to {levels[name]}"
        if error is not None:
            lines.append(f"{'Can not' if dry_run else 'Could not'} {operation} {name}{target}. {error.message}")
        else:
            done = operation + ("d" if operation.endswith("e") else "ed")
            lines.append(f"{name} {'can be' if dry_run else 'was'} {done}{target}.")
    return lines


def mapping(release: str | None) -> dict[str, int]:
    """The feature levels of a release, metadata.version first."""
    from strandline.metadata import features

    try:
        version = max(features.METADATA_VERSIONS) if release is None else features.metadata_version(release)
    except features.UnknownFeature as error:
        raise CommandRefused(str(error)) from None
    others = [name for name in features.SUPPORTED if name != features.METADATA_VERSION]
    return {features.METADATA_VERSION: version} | {name: features.default_level(name, version) for name in others}


def dependencies(text: str) -> tuple[str, int, dict[str, int]]:
    """A feature, its level, and the features that this level depends on."""
    from strandline.metadata import features

    name, level = parse_level(text)
    if name not in features.SUPPORTED:
        raise CommandRefused(f"Unknown feature: {name}")
    try:
        return name, level, dict(features.dependencies(name, level))
    except features.UnknownFeature as error:
        raise CommandRefused(str(error)) from None


def level_text(name: str, level: int) -> str:
    """A level as text; one of metadata.version as its release."""
    from strandline.metadata import features

    if name != features.METADATA_VERSION:
        return str(level)
    return features.METADATA_VERSIONS.get(level, f"UNKNOWN {level}")
