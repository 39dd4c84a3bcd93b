"""Where the replicas of new partitions go.

Always true: no broker holds a partition twice; leaders (first replicas) go round the brokers, and followers are shifted from
one round to the next so that a dead broker's load spreads over all others. Replicas of a partition lie on as many racks as
there are, and within them on as many hosts; a broker without a rack has its host for one, so that nodes of one machine do not
hold the same partition as long as there are other machines. Fenced brokers get replicas only when the others are too few;
those on their way out, and those whose log dirs are all cordoned, get none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, MetadataImage

MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY = Uuid(bytes(16)), Uuid(bytes(15) + b"\1")
"""Kafka's DirectoryId: the log dir is not known; the broker will choose it and report it."""


def place(
    brokers: Iterable[BrokerImage],
    partition_count: int,
    replication_factor: int,
    randomness: random.Random,
    first: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas for partitions `first` to `first + partition_count`, preferred leader first."""
    usable = [broker for broker in brokers if not broker.in_controlled_shutdown and takes_replicas(broker)]
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
    order = _interleave(active, randomness)
    fenced = _interleave([broker for broker in usable if broker.fenced], randomness)
    start = randomness.randrange(len(order))
    return [_replicas(order, fenced, start, first + i, replication_factor) for i in range(partition_count)]


def takes_replicas(broker: BrokerImage) -> bool:
    """Whether it has a log dir that is not cordoned, or none that we know of."""
    return not broker.log_dirs or not set(broker.log_dirs) <= set(broker.cordoned_log_dirs)


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """The log dir of a new replica: known where the broker has only one, else left to the broker."""
    dirs = image.brokers[broker_id].log_dirs
    return dirs[0] if len(dirs) == 1 else UNASSIGNED_DIRECTORY


def _host(broker: BrokerImage) -> str:
    """The machine, as far as the addresses show; a broker that names none is a machine of its own."""
    return broker.endpoints[0].host if broker.endpoints else f"broker {broker.broker_id}"


def _rack(broker: BrokerImage) -> str:
    return f"rack {broker.rack}" if broker.rack is not None else f"host {_host(broker)}"


def _itself(broker: BrokerImage) -> str:
    return str(broker.broker_id)


def _interleave(brokers: list[BrokerImage], randomness: random.Random) -> list[BrokerImage]:
    """Brokers in an order in which neighbours are on different racks, and within a rack on different hosts, as far as
    possible."""
    racks = _grouped(sorted(brokers, key=lambda broker: broker.broker_id), _rack)
    columns = [_in_turn(_grouped(members, _host)) for members in racks]
    randomness.shuffle(columns)
    return _in_turn(columns)


def _grouped(brokers: list[BrokerImage], key: Callable[[BrokerImage], str]) -> list[list[BrokerImage]]:
    groups: dict[str, list[BrokerImage]] = {}
    for broker in brokers:
        groups.setdefault(key(broker), []).append(broker)
    return [groups[name] for name in sorted(groups)]


def _in_turn(columns: list[list[BrokerImage]]) -> list[BrokerImage]:
    return [column[i] for i in range(max(map(len, columns), default=0)) for column in columns if i < len(column)]


def _replicas(
    order: list[BrokerImage], fenced: list[BrokerImage], start: int, partition: int, replication_factor: int
) -> tuple[int, ...]:
    leader = (start + partition) % len(order)
    shift = (partition // len(order)) % max(len(order) - 1, 1)
    followers = [order[(leader + 1 + (shift + i) % (len(order) - 1)) % len(order)] for i in range(len(order) - 1)]
    chosen = [order[leader]]
    for place_of in (_rack, _host, _itself):
        taken = {place_of(broker) for broker in chosen}
        for candidate in followers:
            where = place_of(candidate)
            if len(chosen) < replication_factor and where not in taken:
                chosen.append(candidate)
                taken.add(where)
    chosen += fenced[: replication_factor - len(chosen)]
    return tuple(broker.broker_id for broker in chosen)
