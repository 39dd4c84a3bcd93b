"""What the APIs of an active controller need beyond a small broker: who is alive, and a quorum to ask about."""

from __future__ import annotations

from typing import Any

from strandline.controller.liveness import Liveness
from strandline.ids import Uuid
from strandline.raft.messages import ReplicaKey
from strandline.raft.replicas import QuorumDescription, ReplicaDescription

from .conftest import TestBroker

CONTROLLER = "CONTROLLER"


class Quorum:
    """A quorum of these voters, led by this node."""

    def __init__(self, *voter_ids: int, kraft_version: int = 1) -> None:
        self.voter_ids = voter_ids
        self.kraft_version = kraft_version
        self.is_active = True
        self.leader = (1, 1)

    def describe(self) -> QuorumDescription:
        keys = [ReplicaKey(voter_id, Uuid(bytes([voter_id]) * 16)) for voter_id in self.voter_ids]
        voters = tuple(ReplicaDescription(key, 10, None, None, {}) for key in keys)
        return QuorumDescription(1, 1, 10, voters, ())


def activate(broker: TestBroker, *voter_ids: int) -> Any:
    """Let this node be the active controller."""
    broker.parts.controller.quorum = Quorum(*(voter_ids or (1,)))  # type: ignore[assignment]
    broker.parts.controller.liveness = Liveness(3.0)
    return broker
