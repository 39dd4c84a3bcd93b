"""The values that count for one topic."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from strandline.config.key import Treatment
from strandline.config.layers import Layers
from strandline.config.topic import TOPIC
from strandline.config.topic_config import TopicConfig


def test_a_topic_without_overrides_has_kafkas_defaults() -> None:
    config = TopicConfig.build()
    assert (config.segment_bytes, config.retention_ms, config.max_message_bytes) == (1 << 30, 604_800_000, 1_048_588)
    assert (config.delete, config.compact, config.log_append_time) == (True, False, False)


def test_the_topic_wins_over_the_broker() -> None:
    layers = Layers({"log.retention.hours": "1", "log.segment.bytes": "2097152", "min.insync.replicas": "2"})
    config = TopicConfig.build(layers, {"retention.ms": "5", "cleanup.policy": "compact, delete"})
    assert (config.retention_ms, config.segment_bytes, config.min_insync_replicas) == (5, 2_097_152, 2)
    assert (config.delete, config.compact) == (True, True)


def test_no_policy_at_all_keeps_everything() -> None:
    config = TopicConfig.build(overrides={"cleanup.policy": ""})
    assert (config.delete, config.compact) == (False, False)


def test_tests_may_have_tiny_segments() -> None:
    assert TopicConfig.build(overrides={"internal.segment.bytes": "100"}).segment_bytes == 100


def test_an_override_of_another_version_is_passed_over() -> None:
    assert TopicConfig.build(overrides={"from.the.future": "1"}) == TopicConfig.build()


def test_every_honoured_key_is_an_attribute() -> None:
    names = {field.name.replace("_", ".") for field in fields(TopicConfig)}
    honoured = {key.name for key in TOPIC.values() if key.treatment is Treatment.HONOURED and not key.internal}
    assert honoured - names == set()


def test_it_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        TopicConfig.build().retention_ms = 1  # type: ignore[misc]
