"""A decision about many partitions that are unlike is the decisions about each of them alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import pytest

from strandline.config.layers import Layers
from strandline.controller import broker_changes, leader_balance, requested_elections
from strandline.controller.alter_partition import ANY_EPOCH, NewIsr
from strandline.controller.alter_partition import alter as alter_partition
from strandline.controller.dir_assignments import ReplicaDirAssignment, assign
from strandline.controller.election_policy import ElectionPolicy, policy_of
from strandline.controller.leader_election import Election, active_brokers
from strandline.controller.partition_change import PartitionTarget, addressed, change
from strandline.errors import KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

from .conftest import broker, cluster
from .partitions import directory
from .unlike import BROKERS, alone, draw

SEEDS = range(150)
Decision = Callable[[MetadataImage, ElectionPolicy], Sequence[r.MetadataRecord]]


def fenced(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.broker_fenced(image, broker_id, policy)


def stopped(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.broker_shutting_down(image, broker_id, policy)


def restarted(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.broker_uncleanly_restarted(image, broker_id, policy)


def unregistered(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.broker_unregistered(image, broker_id, policy)


def unfenced(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.broker_unfenced(image, broker_id, policy)


def dir_lost(broker_id: int) -> Decision:
    return lambda image, policy: broker_changes.dirs_offline(image, broker_id, [directory(broker_id, 1)], policy)


def unclean(_: int) -> Decision:
    return broker_changes.unclean_elections


def balanced(_: int) -> Decision:
    return lambda image, policy: leader_balance.balance(image, policy)[0]


def isr_shrunk(broker_id: int) -> Decision:
    """The leaders on this broker want to be alone in all of their ISRs, in one request."""

    def decide(image: MetadataImage, policy: ElectionPolicy) -> Sequence[r.MetadataRecord]:
        wanted = [
            NewIsr(topic.topic_id, index, partition.leader_epoch, partition.partition_epoch, [(broker_id, ANY_EPOCH)])
            for topic in image.topics.values()
            for index, partition in enumerate(topic.partitions)
        ]
        return alter_partition(image, broker_id, image.brokers[broker_id].epoch, wanted, policy)[0]

    return decide


def dirs_assigned(broker_id: int) -> Decision:
    """It has moved all of its replicas to its second log dir."""

    def decide(image: MetadataImage, policy: ElectionPolicy) -> Sequence[r.MetadataRecord]:
        wanted = [
            ReplicaDirAssignment(directory(broker_id, 1), topic.topic_id, index)
            for topic in image.topics.values()
            for index in range(len(topic.partitions))
        ]
        return assign(image, broker_id, image.brokers[broker_id].epoch, wanted, policy)[0]

    return decide


def asked_for(kind: Election) -> Callable[[int], Decision]:
    def decide(image: MetadataImage, policy: ElectionPolicy) -> Sequence[r.MetadataRecord]:
        records = []
        for topic in image.topics.values():
            for index in range(len(topic.partitions)):
                try:
                    records.append(requested_elections.elect(image, topic.name, index, kind, policy))
                except KafkaError:
                    continue  # refused for this one
        return records

    return lambda _: decide


DECISIONS = {
    "fenced": fenced,
    "stopped": stopped,
    "restarted": restarted,
    "unregistered": unregistered,
    "unfenced": unfenced,
    "dir lost": dir_lost,
    "unclean": unclean,
    "balanced": balanced,
    "isr shrunk": isr_shrunk,
    "dirs assigned": dirs_assigned,
    "elect preferred": asked_for(Election.PREFERRED),
    "elect unclean": asked_for(Election.UNCLEAN),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_over_many_is_the_decisions_over_each_alone(name: str) -> None:
    """Nothing that one partition or topic has may be taken for another's: ISR, log dirs, min.insync.replicas, unclean elections."""
    decided = 0
    for seed in SEEDS:
        image, policy = draw(seed)
        decide = DECISIONS[name](BROKERS[seed % len(BROKERS)])
        one_by_one = []
        for topic in image.topics.values():
            for index in range(len(topic.partitions)):
                for record in decide(alone(image, topic.name, index), policy):
                    assert isinstance(record, PartitionChangeRecord)
                    one_by_one.append(replace(record, partition_id=index))
        assert list(decide(image, policy)) == one_by_one, f"seed {seed}"
        decided += len(one_by_one)
    assert decided > 50, "hardly anything was decided"


def test_a_change_of_another_partition_is_the_same_but_for_its_place() -> None:
    """What was decided of one is written for all that are alike, field by field."""
    topic_id, kinds = Uuid(b"u" * 16), set()
    for seed in SEEDS:
        image, policy = draw(seed)
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                target = PartitionTarget(
                    isr=partition.isr[1:], lost=partition.elr[:1], directories={partition.replicas[0]: topic_id}
                )
                record = change(
                    topic.topic_id, index, partition, target, policy.terms(topic.name, active_brokers(image))
                )
                assert record is not None
                assert addressed(record, topic_id, 7) == replace(record, topic_id=topic_id, partition_id=7)
                kinds |= {field.name for field in fields(record) if getattr(record, field.name) not in (None, -1, -2)}
    assert kinds >= {
        "isr",
        "leader",
        "replicas",
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    }
    assert {"leader_recovery_state", "removing_replicas"} <= kinds


# What went wrong once, or would have, each for itself


def of(partitions: dict[str, tuple[PartitionImage, ...]], *brokers: int, **configs: dict[str, str]) -> MetadataImage:
    topics = {name: TopicImage(name, Uuid(name.encode() * 16), those) for name, those in partitions.items()}
    image = cluster(*(broker(i, fenced=i not in brokers, log_dirs=(directory(i), directory(i, 1))) for i in BROKERS))
    return replace(
        image,
        topics=topics,
        topics_by_id={topic.topic_id: topic for topic in topics.values()},
        configs={(TOPIC_RESOURCE, name): overrides for name, overrides in configs.items()},
    )


def led(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = NO_LEADER) -> PartitionImage:
    return PartitionImage(
        replicas, isr, leader, 0, 0, directories=tuple(directory(replica, replica % 2) for replica in replicas)
    )


def places(records: Sequence[PartitionChangeRecord]) -> list[tuple[str, int, int]]:
    return [(bytes(record.topic_id[:1]).decode(), record.partition_id, record.leader) for record in records]


UNCLEAN = {"unclean.leader.election.enable": "true"}


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_b9_an_unclean_election_is_held_only_where_the_topic_allows_it(names: str) -> None:
    """Of two topics with like partitions that lost their last leader one forbids it, whichever comes first."""
    partition = led((1, 2), (1,))
    image = of(dict.fromkeys(names, (partition, partition)), 2, a=UNCLEAN)
    policy = policy_of(image, Layers())
    assert places(broker_changes.unclean_elections(image, policy)) == [("a", 0, 2), ("a", 1, 2)]
    unfenced_later = of(dict.fromkeys(names, (partition, partition)), a=UNCLEAN)
    assert places(broker_changes.broker_unfenced(unfenced_later, 2, policy)) == [("a", 0, 2), ("a", 1, 2)]


@pytest.mark.parametrize(
    ("lost", "afterwards"),
    [(0, {}), (1, {0: (2,), 2: (2,)})],
    ids=["where it has nothing", "where it has its replicas"],
)
def test_b13_a_lost_log_dir_takes_the_replicas_that_are_in_it_wherever_they_stand_in_the_isr(
    lost: int, afterwards: dict[int, tuple[int, ...]]
) -> None:
    """Broker 3 has its replicas in log dir 1, and broker 2 in 0; in the ISR they are in another order than in the replicas."""
    image = of({"a": (led((2, 3), (3, 2), 3), led((2, 3), (2,), 2), led((2, 3), (2, 3), 2))}, 2, 3)
    records = broker_changes.dirs_offline(image, 3, [directory(3, lost)], ElectionPolicy(1, False, True))
    assert {record.partition_id: record.isr for record in records} == afterwards
    image = of({"a": (led((3, 2, 1), (1, 2), 1),)}, 1, 2, 3)
    assert broker_changes.dirs_offline(image, 1, [directory(1, 0)], ElectionPolicy(1)) == []
    assert len(broker_changes.dirs_offline(image, 1, [directory(1, 1)], ElectionPolicy(1))) == 1


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_b8_preferred_elections_respect_each_topics_own_min_isr(names: str) -> None:
    """With ELR on, who is eligible beside a small ISR depends on min.insync.replicas: another topic's must not clear it."""
    partition = replace(led((1, 2, 3), (2, 1), 2), elr=(3,))
    image = of(dict.fromkeys(names, (partition,)), 1, 2, 3, a={"min.insync.replicas": "3"})
    image = replace(image, features={"eligible.leader.replicas.version": 1})
    records, _ = leader_balance.balance(image, policy_of(image, Layers({"min.insync.replicas": "1"})))
    found = {place: record.eligible_leader_replicas for place, record in zip(places(records), records, strict=True)}
    assert found == {("a", 0, 1): None, ("b", 0, 1): ()}


def test_b13_partitions_with_other_isrs_get_other_leaders_and_isrs() -> None:
    """Alike in all but their ISRs, in one decision."""
    isrs = [(1, 2, 3), (1, 3), (1, 3, 2), (1, 2), (1,)]
    image = of({"a": tuple(led((1, 2, 3), isr, 1) for isr in isrs)}, 1, 2, 3)
    records = broker_changes.broker_fenced(image, 1, ElectionPolicy(1, False, True))
    assert [(record.isr, record.leader) for record in records] == [
        ((2, 3), 2), ((3,), 3), ((3, 2), 2), ((2,), 2), ((), NO_LEADER),
    ]  # fmt: skip
    assert NO_LEADER_CHANGE not in {record.leader for record in records}
