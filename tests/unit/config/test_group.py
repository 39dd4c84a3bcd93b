"""The keys of single groups."""

from __future__ import annotations

import pytest

from strandline.config.broker import BROKER
from strandline.config.errors import ConfigError
from strandline.config.group import GROUP, check_bounds, group_values
from strandline.config.layers import DEFAULTS, Layers

SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def test_every_key_has_its_broker_key_with_the_same_default() -> None:
    for name, key in GROUP.items():
        assert key.default == BROKER[f"group.{name}"].default


def test_a_group_has_its_own_values_and_those_of_its_broker() -> None:
    layers = Layers({"group.consumer.heartbeat.interval.ms": "6000"})
    assert group_values(layers, {SESSION: "50000"}) == {SESSION: 50000, HEARTBEAT: 6000, ASSIGNMENT: 1000}


def test_what_was_set_under_other_bounds_is_kept_within_those_of_today() -> None:
    layers = Layers({"group.consumer.max.session.timeout.ms": "46000"})
    assert group_values(layers, {SESSION: "50000"})[SESSION] == 46000
    assert group_values(DEFAULTS, {HEARTBEAT: "1"})[HEARTBEAT] == 5000


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({SESSION: "44999"}, "between 45000 and 60000"),
        ({HEARTBEAT: "15001"}, "between 5000 and 15000"),
        ({ASSIGNMENT: "-1"}, "at least 0"),
    ],
)
def test_bounds(overrides: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_bounds(DEFAULTS, overrides)


def test_a_session_outlasts_a_heartbeat() -> None:
    bounds = {"group.consumer.min.session.timeout.ms": "1", "group.consumer.max.heartbeat.interval.ms": "60000"}
    check_bounds(Layers(bounds), {SESSION: "6000"})
    with pytest.raises(ConfigError, match="must be greater than"):
        check_bounds(Layers(bounds), {SESSION: "6000", HEARTBEAT: "6000"})
