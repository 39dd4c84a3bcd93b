"""Features: which levels may be finalized, and by whom they must be supported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.controller.features import RECORDS_CHANGED_AT, FeatureUpdate, QuorumFeatures, update
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, MetadataImage
from strandline.metadata.records import ControllerFeature, RegisterControllerRecord
from strandline.wire.feature_upgrades import FeatureUpgradeType

from .conftest import after, broker, cluster

UPGRADE, SAFE, UNSAFE = FeatureUpgradeType
MV, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
FEATURES = ((MV, 7, 30), (KRAFT, 0, 1), (ELR, 0, 1))
QUORUM = QuorumFeatures(node_id=1, voter_ids=(1, 2), kraft_version=1)


def controller(controller_id: int, *features: tuple[str, int, int]) -> RegisterControllerRecord:
    supported = tuple(
        ControllerFeature(name=name, min_supported_version=least, max_supported_version=most)
        for name, least, most in features
    )
    return RegisterControllerRecord(
        controller_id=controller_id, incarnation_id=Uuid(bytes(16)), end_points=(), features=supported
    )


def finalized(**levels: int) -> MetadataImage:
    """A cluster of a broker and a second controller, both of which support all that we do."""
    names = {"mv": MV, "elr": ELR}
    image = cluster(replace(broker(5), features=FEATURES))
    image = replace(image, features={names[short]: level for short, level in levels.items() if level})
    return after(image, [controller(2, *FEATURES)])


def updated(image: MetadataImage, *updates: FeatureUpdate, quorum: QuorumFeatures = QUORUM) -> dict[str, int]:
    """The levels afterwards."""
    return dict(after(image, update(image, updates, quorum, min_insync_replicas=2)).features)


def refusal(image: MetadataImage, *updates: FeatureUpdate, quorum: QuorumFeatures = QUORUM) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        update(image, updates, quorum, min_insync_replicas=2)
    return raised.value.code


@pytest.mark.parametrize(
    ("before", "wanted", "level"),
    [
        ({"mv": 25}, FeatureUpdate(MV, 30), 30),
        ({"mv": 30}, FeatureUpdate(MV, 30), 30),
        ({"mv": 29}, FeatureUpdate(MV, 23, SAFE), 23),
        ({"mv": 29}, FeatureUpdate(MV, 23, UNSAFE), 23),
        ({"mv": 30}, FeatureUpdate(ELR, 1), 1),
        ({"mv": 30, "elr": 1}, FeatureUpdate(ELR, 0, SAFE), None),
        ({"mv": 30, "elr": 1}, FeatureUpdate(ELR, 1), 1),
        ({"mv": 30}, FeatureUpdate("unknown", 0), None),
        ({"mv": 30}, FeatureUpdate(KRAFT, 1), None),
    ],
)
def test_levels_that_may_be(before: dict[str, int], wanted: FeatureUpdate, level: int | None) -> None:
    assert updated(finalized(**before), wanted).get(wanted.name) == level


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ({"mv": 30}, FeatureUpdate(MV, 31)),
        ({"mv": 30}, FeatureUpdate(MV, 6, SAFE)),
        ({"mv": 30}, FeatureUpdate(MV, 0, SAFE)),
        ({"mv": 30}, FeatureUpdate(MV, -1, SAFE)),
        ({"mv": 30}, FeatureUpdate(ELR, 2)),
        ({"mv": 30}, FeatureUpdate("unknown", 1)),
        ({"mv": 30}, FeatureUpdate(ELR, 1, 0)),
        ({"mv": 30}, FeatureUpdate(ELR, 1, 4)),
        ({"mv": 30}, FeatureUpdate(ELR, 1, SAFE)),
        ({"mv": 29}, FeatureUpdate(MV, 24)),
        ({"mv": 30}, FeatureUpdate(MV, 29, SAFE)),
        ({"mv": 30}, FeatureUpdate(MV, 29, UNSAFE)),
        ({"mv": 29}, FeatureUpdate(MV, 22, SAFE)),
        ({"mv": 22}, FeatureUpdate(ELR, 1)),
        ({"mv": 30}, FeatureUpdate(KRAFT, 0, SAFE)),
        ({"mv": 30}, FeatureUpdate(KRAFT, 2)),
    ],
    ids=[
        "newer than we are",
        "older than Kafka 4 reads",
        "metadata.version off",
        "negative",
        "level unknown",
        "feature unknown",
        "upgrade type 0",
        "upgrade type 4",
        "upgrade as a downgrade",
        "downgrade as an upgrade",
        "loses metadata",
        "loses metadata, unsafely",
        "loses metadata further down",
        "depends on a newer metadata.version",
        "kraft.version goes down",
        "kraft.version unknown",
    ],
)
def test_levels_that_may_not_be(before: dict[str, int], wanted: FeatureUpdate) -> None:
    assert refusal(finalized(**before), wanted) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_dependency_may_come_in_the_same_request() -> None:
    assert updated(finalized(mv=22), FeatureUpdate(ELR, 1), FeatureUpdate(MV, 30)) == {MV: 30, ELR: 1}


def test_kraft_version_is_the_quorums() -> None:
    assert update(finalized(mv=30), [FeatureUpdate(KRAFT, 1)], QUORUM, min_insync_replicas=1) == []
    old = QUORUM._replace(kraft_version=0)
    assert refusal(finalized(mv=30), FeatureUpdate(KRAFT, 1), quorum=old) is ErrorCode.INVALID_UPDATE_VERSION


def test_all_updates_are_made_or_none() -> None:
    wanted = [FeatureUpdate(ELR, 1), FeatureUpdate("unknown", 1)]
    assert refusal(finalized(mv=30), *wanted) is ErrorCode.INVALID_UPDATE_VERSION
    assert refusal(finalized(mv=30), *wanted[:1] * 2) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("who", ["broker", "controller", "voter"])
def test_everybody_must_support_a_level(who: str) -> None:
    image, quorum = finalized(mv=30), QUORUM
    match who:
        case "broker":
            image = replace(image, brokers={**image.brokers, 6: replace(broker(6), features=FEATURES[:1])})
        case "controller":
            image = after(image, [controller(3, (MV, 7, 30), (ELR, 0, 0))])
        case "voter":
            quorum = QUORUM._replace(voter_ids=(1, 2, 3))
    assert refusal(image, FeatureUpdate(ELR, 1), quorum=quorum) is ErrorCode.INVALID_UPDATE_VERSION


def test_before_controllers_could_register_they_are_not_asked() -> None:
    image = replace(finalized(mv=14), others={})
    assert updated(image, FeatureUpdate(MV, 15)) == {MV: 15}


def test_with_elr_min_insync_replicas_becomes_one_value_for_all() -> None:
    image = replace(finalized(mv=30), configs={(BROKER_RESOURCE, "5"): {"min.insync.replicas": "3", "a": "b"}})
    image = after(image, update(image, [FeatureUpdate(ELR, 1)], QUORUM, min_insync_replicas=2))
    assert image.config(BROKER_RESOURCE, CLUSTER_DEFAULT) == {"min.insync.replicas": "2"}
    assert image.config(BROKER_RESOURCE, "5") == {"a": "b"}


def test_with_elr_a_value_for_all_stays() -> None:
    image = replace(finalized(mv=30), configs={(BROKER_RESOURCE, CLUSTER_DEFAULT): {"min.insync.replicas": "3"}})
    (record,) = update(image, [FeatureUpdate(ELR, 1)], QUORUM, min_insync_replicas=2)
    assert isinstance(record, r.FeatureLevelRecord)


def test_the_levels_at_which_records_changed_are_kafkas() -> None:
    assert sorted(RECORDS_CHANGED_AT) == [7, 8, 11, 13, 14, 15, 17, 23, 30]
