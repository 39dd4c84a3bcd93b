"""Which of several places counts."""

from __future__ import annotations

from strandline.config.layers import Layers
from strandline.config.topic import TOPIC


def test_the_nearest_place_wins() -> None:
    name = "log.retention.bytes"
    assert Layers().broker_value(name) == -1
    assert Layers({name: "1"}).broker_value(name) == 1
    assert Layers({name: "1"}, {name: "2"}).broker_value(name) == 2
    assert Layers({name: "1"}, {name: "2"}, {name: "3"}).broker_value(name) == 3


def test_milliseconds_win_over_minutes_and_hours() -> None:
    key = TOPIC["retention.ms"]
    assert Layers().topic_default(key) == 168 * 3_600_000
    assert Layers({"log.retention.hours": "1"}).topic_default(key) == 3_600_000
    assert Layers({"log.retention.hours": "1", "log.retention.minutes": "5"}).topic_default(key) == 300_000
    assert Layers({"log.retention.hours": "1", "log.retention.ms": "7"}).topic_default(key) == 7


def test_minus_one_hour_is_for_ever() -> None:
    assert Layers({"log.retention.hours": "-1"}).topic_default(TOPIC["retention.ms"]) == -1


def test_a_dynamic_default_reaches_topics() -> None:
    layers = Layers({"log.retention.hours": "1"}, {"log.retention.ms": "60000"})
    assert layers.topic_default(TOPIC["retention.ms"]) == 60_000
