# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.config.address import parse_address
from strandline.config.errors import ConfigError
from strandline.config.node import NodeConfig
from strandline.config.properties import of

NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "log.dirs": "/data",
}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9404", ("127.0.0.1", 9404)),
        (":9404", ("127.0.0.1", 9404)),
        ("0.0.0.0:9404", ("0.0.0.0", 9404)),
        ("[::1]:9404", ("::1", 9404)),
        ("broker-1.example:0", ("broker-1.example", 0)),
        ("", None),
        ("9404", None),
        ("host:", None),
        ("host:70000", None),
        ("http://host:1", None),
        ("::1:9404", None),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


def config(listener: str) -> NodeConfig:
    return NodeConfig.build(of(NODE | {"metrics.listener": listener}))


def test_metrics_are_off_unless_they_are_asked_for():
    assert NodeConfig.build(of(NODE)).metrics_listener == ""


def test_metrics_for_everybody_are_somebodys_choice_and_warn():
    others = NodeConfig.build(of(NODE)).warnings
    assert config("127.0.0.1:9404").warnings == config(":9404").warnings == others
    [warning] = set(config("0.0.0.0:9404").warnings) - set(others)
    assert "it has no authentication" in warning


def test_what_is_no_address_is_refused():
    with pytest.raises(ConfigError, match=r"metrics\.listener"):
        config("everywhere")
