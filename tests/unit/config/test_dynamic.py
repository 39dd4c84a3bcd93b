"""DynamicConfig: the values in force, replaced as a whole."""

from __future__ import annotations

from strandline.config import properties
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig

GIVEN = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "log.retention.ms": "1000",
}


def dynamic() -> DynamicConfig:
    return DynamicConfig(NodeConfig.build(properties.of(GIVEN)))


def test_a_broker_s_own_dynamic_value_wins_over_the_cluster_s() -> None:
    config = dynamic()
    assert config.update({"log.retention.ms": "2000"}, {})
    assert config.current.topic_defaults.retention_ms == 2000
    assert config.update({"log.retention.ms": "2000"}, {"log.retention.ms": "3000"})
    assert config.current.topic_defaults.retention_ms == 3000


def test_without_dynamic_values_what_was_given_is_in_force_again() -> None:
    config = dynamic()
    config.update({"log.retention.ms": "2000"}, {})
    assert config.update({}, {})
    assert config.current.topic_defaults.retention_ms == 1000


def test_the_same_values_again_change_nothing() -> None:
    config = dynamic()
    before = config.current
    assert not config.update({}, {})
    assert config.current is before
    config.update({"log.retention.ms": "2000"}, {})
    before = config.current
    assert not config.update({"log.retention.ms": "2000"}, {})
    assert config.current is before


def test_a_configuration_that_was_read_before_stays_as_it_was() -> None:
    config = dynamic()
    before = config.current
    config.update({"log.retention.ms": "2000"}, {})
    assert before.topic_defaults.retention_ms == 1000
