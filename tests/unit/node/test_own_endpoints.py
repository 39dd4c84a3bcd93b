"""What a node says of where it listens."""

from __future__ import annotations

from strandline.node.own_endpoints import OwnEndpoints

from .scripted import config_of


def test_a_port_that_the_system_chose_is_advertised_once_it_is_known() -> None:
    endpoints = OwnEndpoints(config_of(listeners="PLAINTEXT://b1:0").listeners)
    assert [(each.host, each.port) for each in endpoints.of_brokers()] == [("b1", 0)]
    endpoints.bound("PLAINTEXT", 4711)
    assert [(each.listener, each.port) for each in endpoints.of_brokers()] == [("PLAINTEXT", 4711)]


def test_what_is_advertised_goes_before_what_is_bound() -> None:
    config = config_of(listeners="PLAINTEXT://b1:0", advertised_listeners="PLAINTEXT://public:19092")
    endpoints = OwnEndpoints(config.listeners)
    endpoints.bound("PLAINTEXT", 4711)
    assert [(each.host, each.port) for each in endpoints.of_brokers()] == [("public", 19092)]


def test_a_broker_has_no_endpoint_for_controllers() -> None:
    assert OwnEndpoints(config_of().listeners).of_controllers() == []
