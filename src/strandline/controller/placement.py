"""Where the replicas of new partitions go.

Always true: no broker holds a partition twice; leaders (first replicas) go round the brokers, and followers are shifted from
one round to the next so that a dead broker's load spreads over all others. With racks, replicas of a partition lie on as
many racks as there are; fenced brokers get replicas only when the others are too few.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import BrokerImage


def place(
    brokers: Iterable[BrokerImage],
    partition_count: int,
    replication_factor: int,
    randomness: random.Random,
    first: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas for partitions `first` to `first + partition_count`, preferred leader first."""
    usable = [broker for broker in brokers if not broker.in_controlled_shutdown]
    active = [broker for broker in usable if not broker.fenced]
    if not active:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced or shutting down.")
    if replication_factor > len(usable):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} broker(s) "
            "are registered.",
        )
    order = _interleave_racks(active, randomness)
    fenced = _interleave_racks([broker for broker in usable if broker.fenced], randomness)
    start = randomness.randrange(len(order))
    return [_replicas(order, fenced, start, first + i, replication_factor) for i in range(partition_count)]


def _interleave_racks(brokers: list[BrokerImage], randomness: random.Random) -> list[BrokerImage]:
    """Brokers in an order in which neighbours are on different racks as far as possible."""
    racks: dict[str | None, list[BrokerImage]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker)
    columns = [racks[rack] for rack in sorted(racks, key=lambda rack: rack or "")]
    randomness.shuffle(columns)
    return [column[i] for i in range(max(map(len, columns), default=0)) for column in columns if i < len(column)]


def _replicas(
    order: list[BrokerImage], fenced: list[BrokerImage], start: int, partition: int, replication_factor: int
) -> tuple[int, ...]:
    leader = (start + partition) % len(order)
    shift = (partition // len(order)) % max(len(order) - 1, 1)
    followers = [order[(leader + 1 + (shift + i) % (len(order) - 1)) % len(order)] for i in range(len(order) - 1)]
    chosen = [order[leader]]
    racks = {order[leader].rack}
    for candidate in followers:
        if len(chosen) < replication_factor and candidate.rack not in racks:
            chosen.append(candidate)
            racks.add(candidate.rack)
    for candidate in (*followers, *fenced):
        if len(chosen) < replication_factor and candidate not in chosen:
            chosen.append(candidate)
    return tuple(broker.broker_id for broker in chosen)
