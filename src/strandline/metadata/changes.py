"""What happened between two images of the metadata, and why: elections, in-sync replicas, brokers, topics.

An image says how things are and not how they came about; the reason is read off the two of them: a leader that is fenced in
the second one is why another broker leads.

Always true: nothing is decided here, and what did not change costs nothing but a look at its identity, because images share it.
A change carries the epochs that it led to, so that the same change reported by two nodes can be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER

RECOVERING = 1
"""Kafka's LeaderRecoveryState after an unclean election."""
UNCLEAN = "unclean: no in-sync replica was left, records may be lost"
FENCED = "the controller lost touch with it"
"""An image does not say what made the controller fence a broker: a session that ran out, or a connection that closed."""


class MetadataChange(NamedTuple):
    kind: str
    """One of the kinds of `node/events.py`."""
    reason: str
    topic: str | None = None
    partition: int | None = None
    facts: dict[str, object] = {}  # noqa: RUF012  (never written to)


def changes(before: MetadataImage, after: MetadataImage) -> Iterator[MetadataChange]:
    """In the order in which one follows from the other: brokers, then topics and partitions."""
    if before.brokers is not after.brokers:
        yield from _broker_changes(before, after)
    if before.topics is after.topics:
        return
    for name, topic in before.topics.items():
        now = after.topics.get(name)
        if now is None or (now is not topic and now.topic_id != topic.topic_id):
            yield MetadataChange("topic deleted", "it was deleted", name, facts={"topic_id": str(topic.topic_id)})
    for name, topic in after.topics.items():
        was = before.topics.get(name)
        if was is topic:
            continue
        if was is None or was.topic_id != topic.topic_id:
            yield _created(topic)
            continue
        for index, partition in enumerate(topic.partitions[: len(was.partitions)]):
            if was.partitions[index] is not partition:
                yield from _partition_changes(before, after, name, index, was.partitions[index], partition)


def _created(topic: TopicImage) -> MetadataChange:
    count = len(topic.partitions)
    factor = max((len(partition.replicas) for partition in topic.partitions), default=0)
    words = f"{count} partition{'s' * (count != 1)}, {factor} replica{'s' * (factor != 1)} each"
    return MetadataChange(
        "topic created", words, topic.name, facts={"topic_id": str(topic.topic_id), "partitions": count}
    )


# Brokers


def _broker_changes(before: MetadataImage, after: MetadataImage) -> Iterator[MetadataChange]:
    for broker_id, broker in before.brokers.items():
        if broker_id not in after.brokers:
            yield _of_broker("fenced", f"broker {broker_id} was unregistered", broker)
    for broker_id, broker in after.brokers.items():
        was = before.brokers.get(broker_id)
        if was is not broker:
            yield from _changes_of_broker(was, broker)


def _changes_of_broker(was: BrokerImage | None, now: BrokerImage) -> Iterator[MetadataChange]:
    name = f"broker {now.broker_id}"
    if was is None:
        yield _of_broker("registered", f"{name} is new", now)
    elif was.epoch != now.epoch:
        if was.incarnation_id != now.incarnation_id:
            yield _of_broker("registered", f"{name} was started again", now)
        else:
            yield _of_broker("registered", f"{name} registered again", now)
    if was is not None and now.fenced and not was.fenced:
        yield _of_broker("fenced", f"{name}: {_why_fenced(was, now)}", now)
    if not now.fenced and (was is None or was.fenced):
        yield _of_broker("unfenced", f"{name} has caught up with the metadata and may lead", now)
    if now.in_controlled_shutdown and (was is None or not was.in_controlled_shutdown):
        yield _of_broker("controlled shutdown", f"{name} asked to stop", now)


def _why_fenced(was: BrokerImage, now: BrokerImage) -> str:
    if was.incarnation_id != now.incarnation_id:
        return "it was started again before its session ended"
    return "it has stopped in order" if now.in_controlled_shutdown else FENCED


def _of_broker(kind: str, reason: str, broker: BrokerImage) -> MetadataChange:
    return MetadataChange(kind, reason, facts={"broker": broker.broker_id, "broker_epoch": broker.epoch})


# Partitions


def _partition_changes(
    before: MetadataImage, after: MetadataImage, topic: str, index: int, was: PartitionImage, now: PartitionImage
) -> Iterator[MetadataChange]:
    epochs = {"leader_epoch": now.leader_epoch, "partition_epoch": now.partition_epoch}

    def change(kind: str, reason: str, **facts: object) -> MetadataChange:
        return MetadataChange(kind, reason, topic, index, facts | epochs)

    if _reassignment(was) != _reassignment(now):
        yield from (change(kind, reason) for kind, reason in _reassigned(was, now))
    unclean = now.leader_recovery_state == RECOVERING and (
        was.leader_recovery_state != RECOVERING or was.leader != now.leader
    )
    if was.leader_epoch != now.leader_epoch:
        leaders = {"from": was.leader, "to": now.leader}
        if now.leader == NO_LEADER:
            yield change("leader lost", f"{_why_left(after, was, now, was.leader)}, and no replica may lead", **leaders)
        elif unclean:
            yield change("unclean election", UNCLEAN, **leaders)
        else:
            yield change("leader elected", _why_elected(before, after, was, now), **leaders)
    left, joined = _but(was.isr, now.isr), _but(now.isr, was.isr)
    if left:
        reason = "; ".join(dict.fromkeys(_why_left(after, was, now, replica) for replica in left))
        yield change("isr shrunk", reason, leader=now.leader, isr=list(now.isr), left=left)
    if joined:
        reason = "it was elected uncleanly" if unclean else f"{_brokers(joined)} caught up"
        yield change("isr expanded", reason, leader=now.leader, isr=list(now.isr), joined=joined)
    if (was.elr, was.last_known_elr) != (now.elr, now.last_known_elr):
        facts = {"elr": list(now.elr), "last_known_elr": list(now.last_known_elr)}
        yield change("elr changed", _why_elr(was, now), **facts)


def _why_elected(before: MetadataImage, after: MetadataImage, was: PartitionImage, now: PartitionImage) -> str:
    if was.leader == now.leader:
        return "the same leader in a new epoch: its replicas changed"
    if was.leader == NO_LEADER:
        broker = before.brokers.get(now.leader)
        came_back = broker is None or not broker.active
        return f"broker {now.leader} {'came back' if came_back else 'is eligible'}, and there was no leader"
    preferred = now.leader == now.replicas[0]
    return _why_unfit(after, now, was.leader) or ("preferred replica" if preferred else "an election was asked for")


def _why_left(after: MetadataImage, was: PartitionImage, now: PartitionImage, replica: int) -> str:
    """Why a replica is in sync no more."""
    return _why_unfit(after, now, replica) or f"broker {replica} fell behind"


def _why_unfit(after: MetadataImage, now: PartitionImage, replica: int) -> str | None:
    """Why a replica can be neither leader nor in sync; None if it could."""
    broker = after.brokers.get(replica)
    if broker is None:
        return f"broker {replica} was unregistered"
    if replica not in now.replicas:
        return f"reassigned: broker {replica} is no replica any more"
    if broker.in_controlled_shutdown:
        return f"broker {replica} is shutting down"
    if broker.fenced:
        return f"broker {replica} was fenced"
    if broker.log_dirs and now.directories:
        directory = now.directories[now.replicas.index(replica)]
        # Ids below 100 are Kafka's constants for a directory that is not known.
        if directory not in broker.log_dirs and int.from_bytes(directory, "big") >= 100:
            return f"a log dir of broker {replica} failed"
    return None


def _why_elr(was: PartitionImage, now: PartitionImage) -> str:
    if joined := _but(now.elr, was.elr):
        return f"{_brokers(joined)} left an ISR below min.insync.replicas, with all that is committed"
    if now.elr or now.last_known_elr:
        return f"{_brokers(_but(was.elr, now.elr) or now.last_known_elr)} no longer counts as eligible"
    return "the ISR is large enough, or has its leader again"


# Reassignments


def _reassignment(partition: PartitionImage) -> tuple[tuple[int, ...], ...]:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def _reassigned(was: PartitionImage, now: PartitionImage) -> Iterator[tuple[str, str]]:
    target = _but(now.replicas, now.removing_replicas)
    if now.adding_replicas or now.removing_replicas:
        origin = _but(was.replicas, was.adding_replicas)
        yield "reassignment started", f"replicas {_list(origin)} → {_list(target)}"
    elif set(was.adding_replicas) - set(now.replicas):
        yield "reassignment finished", f"it was cancelled: replicas are {_list(target)} again"
    else:
        yield "reassignment finished", f"replicas are {_list(target)}"


def _but(replicas: Iterable[int], others: Iterable[int]) -> list[int]:
    others = set(others)
    return [replica for replica in replicas if replica not in others]


def _list(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))


def _brokers(replicas: Iterable[int]) -> str:
    listed = list(replicas)
    return f"broker{'s' * (len(listed) != 1)} {_list(listed)}"
