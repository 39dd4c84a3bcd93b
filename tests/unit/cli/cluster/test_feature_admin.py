# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.cluster import feature_admin
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_features import describe_lines
from strandline.client.flow.descriptions import Feature, FeaturesDescription
from strandline.errors import ErrorCode, KafkaError

ELR = "eligible.leader.replicas.version"


def test_levels_are_named_once():
    assert feature_admin.levels_of("upgrade", (f"{ELR}=1", "metadata.version = 30")) == {ELR: 1, "metadata.version": 30}
    assert feature_admin.levels_of("disable", (ELR,)) == {ELR: 0}
    with pytest.raises(CommandRefused, match="more than once"):
        feature_admin.levels_of("upgrade", (f"{ELR}=1", f"{ELR}=0"))
    for wrong, reason in ((ELR, "equals sign not found"), (f"{ELR}=x", "as a short"), (f"{ELR}=40000", "as a short")):
        with pytest.raises(CommandRefused, match=reason):
            feature_admin.levels_of("upgrade", (wrong,))


def test_a_release_stands_for_the_levels_of_all_features():
    assert feature_admin.levels_of("upgrade", (), "4.0") == {
        "metadata.version": 25,
        "kraft.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert feature_admin.levels_of("downgrade", (), "4.0")[ELR] == 0
    with pytest.raises(CommandRefused, match=r"Unknown metadata\.version '9\.9'"):
        feature_admin.levels_of("upgrade", (), "9.9")
    with pytest.raises(CommandRefused, match="with other feature flags"):
        feature_admin.levels_of("upgrade", (f"{ELR}=1",), "4.0")


def test_what_became_of_each_feature_is_said_in_kafkas_words():
    levels = {"metadata.version": 30, ELR: 1}
    refused = KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "No.")
    answers = {"metadata.version": None, ELR: refused}
    assert feature_admin.change_lines("upgrade", levels, answers, dry_run=False) == [
        f"Could not upgrade {ELR} to 1. No.",
        "metadata.version was upgraded to 30.",
    ]
    assert feature_admin.change_lines("downgrade", levels, answers, dry_run=True) == [
        f"Can not downgrade {ELR} to 1. No.",
        "metadata.version can be downgraded to 30.",
    ]
    assert feature_admin.change_lines("disable", {ELR: 0}, {ELR: None}, dry_run=False) == [f"{ELR} was disabled."]


def test_features_in_kafkas_lines():
    described = FeaturesDescription((Feature("kraft.version", 0, 1, 1), Feature("metadata.version", 7, 30, 99)), 12)
    assert describe_lines(described) == [
        f"Feature: kraft.version{' ' * 27}  SupportedMinVersion: 0{' ' * 14}  SupportedMaxVersion: 1{' ' * 14}  "
        f"FinalizedVersionLevel: 1{' ' * 14}  Epoch: 12",
        f"Feature: metadata.version{' ' * 24}  SupportedMinVersion: 3.3-IV3{' ' * 8}  SupportedMaxVersion: 4.3-IV0"
        f"{' ' * 8}  FinalizedVersionLevel: UNKNOWN 99{' ' * 5}  Epoch: 12",
    ]
    assert describe_lines(described._replace(epoch=None))[0].endswith("Epoch: -")


def test_tables_that_need_no_cluster(call):
    assert call("kafka-features", "version-mapping").out.splitlines()[0] == "metadata.version=30 (4.3-IV0)"
    assert "kraft.version=1" in call("kafka-features", "version-mapping", "--release-version", "4.0").out
    wanted = call("kafka-features", "feature-dependencies", "--feature", f"{ELR}=1", "--feature", "kraft.version=1")
    assert wanted.out == (
        f"{ELR}=1 requires:\n    metadata.version=23 (4.0-IV1)\nkraft.version=1 has no dependencies.\n"
    )
    ours = call("features", "feature-dependencies", "--feature", f"{ELR}=1", "--json")
    assert ours.out == f'[{{"feature": "{ELR}", "level": 1, "requires": {{"metadata.version": 23}}}}]\n'
    assert "metadata.version\t30\t4.3-IV0\n" in call("features", "version-mapping").out


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (("features", "upgrade"), 1, "at least one feature to upgrade"),
        (("features", "feature-dependencies"), 2, "Missing option '--feature'"),
        (("kafka-features", "feature-dependencies", "--feature", "nope=1"), 1, "Unknown feature: nope"),
        (("kafka-features", "feature-dependencies", "--feature", "kraft.version=7"), 1, "level 7"),
        (("kafka-features", "--bootstrap-server", "a:1", "describe", "--node-id", "-1"), 1, "must be non-negative"),
        (("kafka-features", "describe"), 2, "Missing option '--bootstrap-server'"),
    ],
)
def test_what_cannot_be_done_is_one_line(call, flags, code, reason):
    ran = call(*flags)
    assert ran.code == code
    assert reason in ran.err
