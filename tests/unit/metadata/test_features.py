"""The tables of features, as Apache Kafka 4.3 has them."""

from __future__ import annotations

import pytest

from strandline.metadata import features
from strandline.metadata.features import UnknownFeature


def test_the_names_of_metadata_versions() -> None:
    names = features.METADATA_VERSIONS
    assert (min(names), max(names)) == (7, 30)
    assert {level: names[level] for level in (7, 8, 11, 14, 17, 19, 20, 21, 23, 25, 26, 29, 30)} == {
        7: "3.3-IV3", 8: "3.4-IV0", 11: "3.5-IV2", 14: "3.6-IV2", 17: "3.7-IV2", 19: "3.7-IV4", 20: "3.8-IV0",
        21: "3.9-IV0", 23: "4.0-IV1", 25: "4.0-IV3", 26: "4.1-IV0", 29: "4.2-IV1", 30: "4.3-IV0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("release", "level"), [("4.3-IV0", 30), ("4.3", 30), ("4.3.1", 30), ("3.7", 19), ("3.7-IV0", 15), ("3.3", 7)]
)
def test_a_release_has_a_level(release: str, level: int) -> None:
    assert features.metadata_version(release) == level


@pytest.mark.parametrize("release", ["", "4", "4.4", "3.3-IV2", "latest"])
def test_a_release_that_we_do_not_know(release: str) -> None:
    with pytest.raises(UnknownFeature, match=f"Unknown metadata.version '{release}'. .* 3.3-IV3, .*, 4.3-IV0$"):
        features.metadata_version(release)


def test_txn_t45_what_a_new_cluster_begins_with() -> None:
    assert list(features.bootstrap_features().items()) == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("transaction.version", 2),
    ]
    assert features.bootstrap_features(25) == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    assert features.bootstrap_features(21) == {"metadata.version": 21}
    wanted = {"eligible.leader.replicas.version": 1, "kraft.version": 1, "group.version": 0}
    assert features.bootstrap_features(25, wanted) == {
        "metadata.version": 25,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }
    assert features.bootstrap_features(30, {"eligible.leader.replicas.version": 0}) == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert [record.name for record in features.bootstrap_records(features.bootstrap_features())] == [
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
        "transaction.version",
    ]


def test_txn_t45_default_levels_follow_the_release() -> None:
    assert [features.default_level("kraft.version", level) for level in (20, 21, 30)] == [0, 1, 1]
    assert [features.default_level("eligible.leader.replicas.version", level) for level in (25, 26, 30)] == [0, 1, 1]
    assert [features.default_level("group.version", level) for level in (21, 22, 30)] == [0, 1, 1]
    assert [features.default_level("transaction.version", level) for level in (23, 24, 30)] == [0, 2, 2]
    assert [features.dependencies("transaction.version", level) for level in range(3)] == [{}] * 3


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ({"share.version": 1}, "Unsupported feature: share.version. Supported features are: eligible.leader.replicas.version"),
        ({"eligible.leader.replicas.version": 2}, "No feature eligible.leader.replicas.version with level 2. Its levels"),
        ({"metadata.version": 31}, "No feature metadata.version with level 31. Its levels are 7 to 30"),
        ({"kraft.version": -1}, "No feature kraft.version with level -1"),
        (
            {"eligible.leader.replicas.version": 1, "metadata.version": 22},
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
        ({"eligible.leader.replicas.version": 1}, "depends on metadata.version level 23"),
    ],
)  # fmt: skip
def test_levels_that_cannot_be(levels: dict[str, int], reason: str) -> None:
    with pytest.raises(UnknownFeature) as error:
        features.check_levels(levels)
    assert reason in str(error.value)


def test_levels_that_go_together() -> None:
    features.check_levels({"eligible.leader.replicas.version": 1, "metadata.version": 23, "kraft.version": 1})
    assert features.dependencies("eligible.leader.replicas.version", 1) == {"metadata.version": 23}
    assert features.dependencies("kraft.version", 1) == {}


def test_every_default_is_supported_together() -> None:
    for level in features.METADATA_VERSIONS:
        features.bootstrap_features(level)
