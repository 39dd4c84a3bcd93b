"""The group of a setting: its protocol, its members, and the brokers' configuration for it.

Always true: it is drawn from a stream of its own, so that a seed's cluster is the same whether or not there is a group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

CLASSIC, CONSUMER = "classic", "consumer"
RANGE, COOPERATIVE_STICKY, UNIFORM = "range", "cooperative-sticky", "uniform"
GROUP_IDS = ("orders", "audit", "mail", "billing")
"""Several, so that it is not always the same partition of the offsets topic."""
SHARE = 0.3
"""So many of all histories have a group."""
GROUPED = "grouped"
"""Its topic, in the place of the first that the setting would have."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    group_id: str
    protocol: str
    assignor: str
    members: int
    is_static: bool
    auto_commit: bool
    partitions: int
    """Of its own topic."""
    session_ms: int
    initial_delay_ms: int
    offsets_partitions: int

    @property
    def heartbeat_ms(self) -> int:
        return self.session_ms // 3

    @property
    def session_s(self) -> float:
        return self.session_ms / 1000

    def config(self, replicas: int, *, is_synced: bool) -> dict[str, str]:
        """Of the brokers: the offsets topic keeps the same promise as the topics of the load."""
        config = {
            "offsets.topic.num.partitions": str(self.offsets_partitions),
            "offsets.topic.replication.factor": str(replicas),
            "min.insync.replicas": str(2 if replicas == 3 else 1),
            "group.initial.rebalance.delay.ms": str(self.initial_delay_ms),
            "group.min.session.timeout.ms": "1000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(self.session_ms),
            "group.consumer.min.heartbeat.interval.ms": "500",
            "group.consumer.heartbeat.interval.ms": str(self.heartbeat_ms),
        }
        return config | {"log.flush.interval.messages": "1"} if is_synced else config

    def __str__(self) -> str:
        members = f"{self.members} static" if self.is_static else str(self.members)
        return f"group of {members}, {self.protocol} {self.assignor}" + ", auto-commit" * self.auto_commit


def has_group(seed: int) -> bool:
    return random.Random(f"{seed}/groups").random() < SHARE


def plans(seed: int) -> Iterator[GroupPlan]:
    """One after another, until one fits."""
    chance = random.Random(f"{seed}/groups/plan")
    while True:
        protocol = chance.choice((CLASSIC, CONSUMER))
        yield GroupPlan(
            chance.choice(GROUP_IDS),
            protocol,
            chance.choice((RANGE, COOPERATIVE_STICKY) if protocol == CLASSIC else (RANGE, UNIFORM)),
            chance.choices((1, 2, 3, 4), (1, 4, 3, 1))[0],
            chance.random() < 0.25,
            chance.random() < 0.25,
            chance.choice((2, 3)),
            chance.choice((6_000, 9_000)),
            chance.choice((0, 200, 1_000)),
            chance.choices((1, 2, 3), (7, 2, 1))[0],
        )
