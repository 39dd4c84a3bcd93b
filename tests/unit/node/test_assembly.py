"""What a node is made of: every signal has its subscribers, and a part of a role is there if the node has that role."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.ids import Uuid
from strandline.node import assembly
from strandline.node.assembly import NodeGround, NodeParts, assemble
from strandline.node.log_dirs import LogDir
from strandline.node.running import Running
from strandline.node.signals import MarkerSignals, ReplicaSignals
from strandline.replica.partition import Partition
from strandline.sim.world import World

from .conftest import HOST, Stage
from .scripted import quiet_logger

UNUSED = {
    "broker": {"quorum.activated", "quorum.deactivated"},
    "controller": {
        *(f"replicas.{field.name}" for field in dataclasses.fields(ReplicaSignals)),
        *(f"markers.{field.name}" for field in dataclasses.fields(MarkerSignals)),
    },
    "broker,controller": set(),
}
"""Signals without a subscriber, by role: what they report does not happen there."""


def assembled(roles: str, monkeypatch: pytest.MonkeyPatch) -> tuple[NodeParts, Any]:
    """The parts of a node with these roles, and its signals."""
    make, signals, parts = assembly._Signals, [], []

    def make_signals() -> Any:
        signals.append(make())
        return signals[-1]

    monkeypatch.setattr(assembly, "_Signals", make_signals)
    listeners = {
        "broker": f"PLAINTEXT://{HOST}:9092",
        "controller": f"CONTROLLER://{HOST}:9093",
        "broker,controller": f"PLAINTEXT://{HOST}:9092,CONTROLLER://{HOST}:9093",
    }
    with World(1) as world:
        stage = Stage(
            world,
            {
                "process.roles": roles,
                "listeners": listeners[roles],
                **({"controller.quorum.voters": "2@n2:9093"} if roles == "broker" else {}),
            },
        )

        async def main() -> None:
            logger = quiet_logger()
            ground = NodeGround(
                DynamicConfig(stage.config),
                stage.disk,
                stage.host.clock,
                stage.host.randomness,
                logger,
                Running(logger),
                Uuid(bytes(16)),
                100,
                "cluster",
                [LogDir("/data", Uuid(bytes(16)), clean=False)],
                -1,
            )
            parts.append(assemble(ground))

        world.run(main())
    return parts[0], signals[0]


@pytest.mark.parametrize("roles", list(UNUSED))
def test_every_signal_that_may_come_has_its_subscribers(roles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, signals = assembled(roles, monkeypatch)
    groups = {field.name: getattr(signals, field.name) for field in dataclasses.fields(signals)}
    single = {name: group for name, group in groups.items() if not dataclasses.is_dataclass(group)}
    for name, group in groups.items():
        if dataclasses.is_dataclass(group):
            single |= {f"{name}.{field.name}": getattr(group, field.name) for field in dataclasses.fields(group)}
    assert {name for name, signal in single.items() if not signal._subscribers} == UNUSED[roles]


@pytest.mark.parametrize("roles", list(UNUSED))
def test_a_node_has_the_parts_of_its_roles(roles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, _ = assembled(roles, monkeypatch)
    assert (parts.broker_server is not None) == ("broker" in roles)
    assert (parts.controller_server is not None) == ("controller" in roles)


def test_a_node_that_is_no_broker_hosts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, _ = assembled("controller", monkeypatch)
    assert not parts.context.hosted.by_name
    assert parts.context.hosted.log_dirs() == {}
    with pytest.raises(AssertionError, match="no broker"):
        parts.context.hosted.storage_failed(cast(Partition, None), OSError())
