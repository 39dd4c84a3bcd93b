"""Kafka's features: their names and levels, what a release brings along, and which level needs which.

A feature is finalised at one level for a whole cluster; each node says which levels it supports.
Always true: the tables are those of Apache Kafka 4.3 as far as we serve what a feature stands for; a feature that we do not
serve is not in them, so that it can't be turned on.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.metadata.records import METADATA_VERSION_4_3, METADATA_VERSION_MIN, FeatureLevelRecord

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

SUPPORTED: dict[str, range] = {
    METADATA_VERSION: range(METADATA_VERSION_MIN, METADATA_VERSION_4_3 + 1),
    KRAFT_VERSION: range(2),
    TRANSACTION_VERSION: range(3),
    GROUP_VERSION: range(2),
    ELIGIBLE_LEADER_REPLICAS_VERSION: range(2),
}
"""The levels of each feature that this node supports. Level 0 is a feature turned off."""

_RELEASES = (
    ("3.3", (3,)),
    ("3.4", (0,)),
    ("3.5", (0, 1, 2)),
    ("3.6", (0, 1, 2)),
    ("3.7", (0, 1, 2, 3, 4)),
    ("3.8", (0,)),
    ("3.9", (0,)),
    ("4.0", (0, 1, 2, 3)),
    ("4.1", (0, 1)),
    ("4.2", (0, 1)),
    ("4.3", (0,)),
)
METADATA_VERSIONS: dict[int, str] = dict(
    enumerate((f"{release}-IV{number}" for release, numbers in _RELEASES for number in numbers), METADATA_VERSION_MIN)
)
"""The name of each level of metadata.version."""

_LEVELS: dict[str, int] = {name: level for level, name in METADATA_VERSIONS.items()} | {
    name.partition("-")[0]: level for level, name in METADATA_VERSIONS.items()
}
"""A release without IV is the last of its levels."""

_SINCE: dict[str, dict[int, int]] = {
    KRAFT_VERSION: {1: 21},
    TRANSACTION_VERSION: {2: 24},
    GROUP_VERSION: {1: 22},
    ELIGIBLE_LEADER_REPLICAS_VERSION: {1: 26},
}
"""The metadata.version from which a level is the default of new clusters; that of transactions is TXN-T45."""

_DEPENDENCIES: dict[tuple[str, int], dict[str, int]] = {
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): {METADATA_VERSION: 23},
}


class UnknownFeature(ValueError):
    """A feature, level or release that is not in the tables, or does not go with the others; says which."""


def metadata_version(release: str) -> int:
    """The level of a release: "4.3", "4.3-IV0", "4.3.1"."""
    level = _LEVELS.get(".".join(release.split(".")[:2]))
    if level is None:
        names = ", ".join(METADATA_VERSIONS.values())
        raise UnknownFeature(f"Unknown metadata.version '{release}'. Supported metadata.version are: {names}")
    return level


def default_level(feature: str, metadata_version: int) -> int:
    """The level that a new cluster of this metadata.version gets."""
    if feature == METADATA_VERSION:
        return metadata_version
    return max((level for level, since in _SINCE[feature].items() if since <= metadata_version), default=0)


def dependencies(feature: str, level: int) -> Mapping[str, int]:
    """The features that this level needs, and at which level at least. UnknownFeature if we do not have it."""
    check_supported(feature, level)
    return _DEPENDENCIES.get((feature, level), {})


def check_supported(feature: str, level: int) -> None:
    levels = SUPPORTED.get(feature)
    if levels is None:
        others = ", ".join(sorted(SUPPORTED.keys() - {METADATA_VERSION}))
        raise UnknownFeature(f"Unsupported feature: {feature}. Supported features are: {others}")
    if level not in levels:
        raise UnknownFeature(f"No feature {feature} with level {level}. Its levels are {levels[0]} to {levels[-1]}")


def check_levels(levels: Mapping[str, int]) -> None:
    """UnknownFeature unless all of these may be finalised together."""
    for feature, level in levels.items():
        for needed, least in dependencies(feature, level).items():
            if levels.get(needed, 0) < least:
                raise UnknownFeature(
                    f"{feature} could not be set to {level} because it depends on {needed} level {least}"
                )


def bootstrap_features(
    metadata_version: int = METADATA_VERSION_4_3, wanted: Mapping[str, int] | None = None
) -> dict[str, int]:
    """What a new cluster begins with, kraft.version aside, which is not decided by the metadata log but by its quorum.

    metadata.version comes first; features at level 0 are left out.
    """
    levels = {feature: default_level(feature, metadata_version) for feature in SUPPORTED} | dict(wanted or {})
    check_levels(levels)
    del levels[KRAFT_VERSION]
    first = {METADATA_VERSION: levels.pop(METADATA_VERSION)}
    return first | {feature: level for feature, level in sorted(levels.items()) if level}


def bootstrap_records(features: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """The records that a new cluster's log begins with."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.items()]
