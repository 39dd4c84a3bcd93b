"""Decisions about features: which level of each the whole cluster works at.

Always true: a level is finalized only if every registered broker and every controller supports it, and never loses what is
in the metadata; of several updates all are made or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from strandline.controller.activation import min_isr_for_elr
from strandline.controller.controllers import registered
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    UnknownFeature,
    check_levels,
)
from strandline.metadata.image import MetadataImage
from strandline.wire.feature_upgrades import FeatureUpgradeType

ABSENT = range(1)
"""The levels of a feature that a node does not know: only 0, turned off."""

RECORDS_CHANGED_AT = frozenset(level for record in r.BY_KEY.values() for level in record.LEVELS if level)
"""The levels of metadata.version that brought new records or fields: below them, what those hold can't be written."""


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int = FeatureUpgradeType.UPGRADE


class QuorumFeatures(NamedTuple):
    """What the metadata does not say of its controllers."""

    node_id: int
    voter_ids: Collection[int]
    kraft_version: int


def update(
    image: MetadataImage, updates: Sequence[FeatureUpdate], quorum: QuorumFeatures, *, min_insync_replicas: int
) -> list[r.MetadataRecord]:
    """The records that finalize these levels; KafkaError if one of them can't be."""
    if len({wanted.name for wanted in updates}) != len(updates):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A feature is to be updated twice.")
    levels = {**image.features, KRAFT_VERSION: quorum.kraft_version}
    for wanted in updates:
        if problem := _problem(image, wanted, levels.get(wanted.name, 0), quorum):
            raise _refused(wanted, problem)
    levels |= {wanted.name: wanted.level for wanted in updates}
    try:
        check_levels({name: level for name, level in levels.items() if name in SUPPORTED})
    except UnknownFeature as error:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, str(error)) from None
    records: list[r.MetadataRecord] = []
    if any(wanted.name == ELIGIBLE_LEADER_REPLICAS_VERSION and wanted.level for wanted in updates):
        records += min_isr_for_elr(image, min_insync_replicas)
    records += [
        r.FeatureLevelRecord(name=wanted.name, feature_level=wanted.level)
        for wanted in updates
        if wanted.level != image.features.get(wanted.name, 0) and wanted.name != KRAFT_VERSION
    ]
    return records


def _refused(wanted: FeatureUpdate, problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{wanted.name} can't become {wanted.level}: {problem}")


def _problem(image: MetadataImage, wanted: FeatureUpdate, level: int, quorum: QuorumFeatures) -> str | None:
    """Why this level can't be finalized."""
    if wanted.upgrade_type not in list(FeatureUpgradeType):
        return f"there is no upgrade type {wanted.upgrade_type}."
    if wanted.level < 0:
        return "a level is at least 0."
    if problem := _not_supported(image, wanted, quorum):
        return problem
    if wanted.level < level:
        if wanted.upgrade_type == FeatureUpgradeType.UPGRADE:
            return f"that is a downgrade from {level}, which has to be asked for as one."
        return _downgrade_problem(wanted, level)
    if wanted.level > level:
        if wanted.upgrade_type != FeatureUpgradeType.UPGRADE:
            return f"that is no downgrade from {level}."
        if wanted.name == KRAFT_VERSION:
            return f"the quorum was formatted with {level}, and can't change that while it runs."
    return None


def _downgrade_problem(wanted: FeatureUpdate, level: int) -> str | None:
    if wanted.name == KRAFT_VERSION:
        return "this feature is never downgraded."
    if wanted.name == METADATA_VERSION and any(wanted.level < changed <= level for changed in RECORDS_CHANGED_AT):
        if wanted.upgrade_type == FeatureUpgradeType.UNSAFE_DOWNGRADE:
            return f"from {level} metadata could be lost, and unsafe downgrades are not supported."
        return f"from {level} metadata could be lost."
    return None


def _not_supported(image: MetadataImage, wanted: FeatureUpdate, quorum: QuorumFeatures) -> str | None:
    """Why a level is not supported: the first node that does not know it, or may not."""
    if wanted.level not in SUPPORTED.get(wanted.name, ABSENT):
        return f"controller {quorum.node_id} does not support it."
    for broker in image.brokers.values():
        if wanted.level not in _range_of(wanted.name, broker.features):
            return f"broker {broker.broker_id} does not support it."
    if image.features.get(METADATA_VERSION, 0) < r.RegisterControllerRecord.LEVELS[0]:
        return None
    controllers = registered(image)
    for controller in controllers.values():
        ranges = ((f.name, f.min_supported_version, f.max_supported_version) for f in controller.features)
        if controller.controller_id != quorum.node_id and wanted.level not in _range_of(wanted.name, ranges):
            return f"controller {controller.controller_id} does not support it."
    for voter_id in quorum.voter_ids:
        if voter_id != quorum.node_id and voter_id not in controllers:
            return f"controller {voter_id} has not registered, and may not support it."
    return None


def _range_of(name: str, features: Iterable[tuple[str, int, int]]) -> range:
    return next((range(least, most + 1) for known, least, most in features if known == name), ABSENT)
