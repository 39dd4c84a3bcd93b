"""The shape of a simulated cluster: which nodes there are, what each is, where each stands.

Always true: every node is a broker, a controller, or both; node 1 lives on host n1. With spare controllers, or if it
says so, the quorum is dynamic (KIP-853): voters are then known from the log, and not from the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST_SEPARATE_CONTROLLER = 101


def host(node_id: int) -> str:
    return f"n{node_id}"


@dataclass(frozen=True, slots=True)
class Shape:
    voters: tuple[int, ...]
    """Controllers that vote from the beginning."""
    brokers: tuple[int, ...]
    spares: tuple[int, ...] = ()
    """Controllers that do not vote at first."""
    racks: Mapping[int, str] = field(default_factory=dict)
    config: Mapping[str, str] | None = None
    """Of every node."""
    two_listeners: bool = False
    """Brokers talk to each other on a listener of their own."""
    transaction_version: int = 0
    """The level of the feature with which the cluster is formatted."""

    @classmethod
    def combined(cls, nodes: int, config: Mapping[str, str] | None = None) -> Shape:
        ids = tuple(range(1, nodes + 1))
        return cls(ids, ids, config=config)

    @classmethod
    def apart(
        cls, voters: int = 3, brokers: int = 3, spares: int = 0, config: Mapping[str, str] | None = None
    ) -> Shape:
        """Controllers 101 and on, brokers 1 and on."""
        first_spare = FIRST_SEPARATE_CONTROLLER + voters
        return cls(
            tuple(range(FIRST_SEPARATE_CONTROLLER, first_spare)),
            tuple(range(1, brokers + 1)),
            tuple(range(first_spare, first_spare + spares)),
            config=config,
        )

    @property
    def controllers(self) -> tuple[int, ...]:
        return (*self.voters, *self.spares)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted({*self.brokers, *self.controllers}))

    @property
    def is_combined(self) -> bool:
        return set(self.voters) == set(self.brokers)

    @property
    def is_dynamic(self) -> bool:
        return bool(self.spares)

    def __str__(self) -> str:
        if self.is_combined:
            return "1 combined node" if len(self.voters) == 1 else f"{len(self.voters)} combined nodes"
        spares = f" and {len(self.spares)} spare" if self.spares else ""
        controllers = "controller" if len(self.voters) == 1 else "controllers"
        return f"{len(self.voters)}{spares} {controllers}, {len(self.brokers)} brokers"
