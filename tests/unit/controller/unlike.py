"""Clusters whose topics, partitions and brokers are unlike: drawn, so that whatever a decision shares among them shows.

Always true: each image could be a cluster's: ISR and ELR have no member in common and none outside of the replicas, a leader is
in the ISR; but ISRs and replicas are in orders of their own, settings differ by topic, and each replica is in one of two log dirs.
"""

from __future__ import annotations

import random
from dataclasses import replace

from strandline.config.layers import Layers
from strandline.controller.election_policy import ElectionPolicy, policy_of
from strandline.controller.partition_change import RECOVERED, RECOVERING
from strandline.controller.placement import UNASSIGNED_DIRECTORY
from strandline.ids import Uuid
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER

from .conftest import broker
from .partitions import directory

BROKERS = range(1, 6)
TOPICS = 4
PARTITIONS_MAX = 6
VARIED = [
    "nothing",
    "isr",
    "order",
    "leader",
    "elr",
    "last",
    "directories",
    "recovery",
    "replicas",
    "adding",
    "removing",
]
BASES = 3
"""Partitions of which all others are variants."""


def draw(seed: int) -> tuple[MetadataImage, ElectionPolicy]:
    """A cluster, and what its configuration says."""
    chance = random.Random(seed)
    brokers = {}
    for i in BROKERS:
        dirs = (directory(i), directory(i, 1))
        online = dirs if chance.random() < 0.7 else chance.choice([dirs[:1], dirs[1:]])
        is_down = chance.random() < 0.3
        is_stopping = not is_down and chance.random() < 0.1
        brokers[i] = broker(i, fenced=is_down, stopping=is_stopping, log_dirs=online)
    topics, configs = {}, {}
    bases = [draw_partition(chance) for _ in range(BASES)]
    for number in range(TOPICS):
        name = f"t{number}"
        partitions = tuple(varied(chance, chance.choice(bases)) for _ in range(chance.randint(1, PARTITIONS_MAX)))
        topics[name] = TopicImage(name, Uuid(bytes(15) + bytes([number + 1])), partitions)
        overrides = {}
        if chance.random() < 0.6:
            overrides["min.insync.replicas"] = str(chance.randint(1, 3))
        if chance.random() < 0.6:
            overrides["unclean.leader.election.enable"] = chance.choice(["true", "false"])
        if overrides:
            configs[TOPIC_RESOURCE, name] = overrides
    features = {"eligible.leader.replicas.version": 1} if chance.random() < 0.6 else {}
    image = MetadataImage(brokers=brokers, topics={}, topics_by_id={}, configs=configs, features=features)
    layers = Layers({"min.insync.replicas": str(chance.randint(1, 2))})
    return with_topics(image, topics), policy_of(image, layers)


def varied(chance: random.Random, base: PartitionImage) -> PartitionImage:
    """The same partition but for one thing at most: what takes two for one must not, and may where there is none."""
    replicas, isr = base.replicas, base.isr
    rest = [replica for replica in replicas if replica not in isr]
    match chance.choice(VARIED):
        case "isr" if isr:
            kept = tuple(member for member in isr if member == base.leader or chance.random() < 0.5)
            return replace(base, isr=kept)
        case "order":
            return replace(base, isr=isr[::-1])
        case "leader":
            return replace(base, leader=chance.choice([NO_LEADER, *isr]))
        case "elr":
            return replace(base, elr=tuple(chance.sample(rest, chance.randint(0, len(rest)))))
        case "last" if base.leader == NO_LEADER:
            return replace(base, last_known_elr=(chance.choice(replicas),))
        case "directories" if base.directories:
            return replace(base, directories=tuple(directory(replica, chance.randint(0, 1)) for replica in replicas))
        case "recovery":
            return replace(base, leader_recovery_state=RECOVERING)
        case "replicas" if not base.directories:
            return replace(base, replicas=tuple(chance.sample(replicas, len(replicas))))
        case "adding":
            return replace(base, adding_replicas=chance.choice([(), *((member,) for member in isr)]))
        case "removing":
            return replace(base, removing_replicas=chance.choice([(), *((member,) for member in replicas)]))
    return base


def draw_partition(chance: random.Random) -> PartitionImage:
    replicas = chance.choice([(1, 2, 3), (2, 1, 3), (3, 2, 1), (2, 3, 4), (1, 2), (5, 1, 2)])
    isr = tuple(chance.sample(replicas, chance.randint(0, len(replicas))))
    rest = [replica for replica in replicas if replica not in isr]
    elr = tuple(chance.sample(rest, chance.randint(0, len(rest)))) if chance.random() < 0.5 else ()
    leader = chance.choice(isr) if isr and chance.random() < 0.7 else NO_LEADER
    spare = [i for i in BROKERS if i not in replicas]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    if chance.random() < 0.2:
        adding = (chance.choice(spare),)
        replicas, removing = (*replicas, *adding), chance.choice([(), replicas[:1]])
    return PartitionImage(
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=chance.randint(0, 3),
        partition_epoch=chance.randint(0, 9),
        adding_replicas=adding,
        removing_replicas=removing,
        directories=()
        if chance.random() < 0.3
        else tuple(
            UNASSIGNED_DIRECTORY if chance.random() < 0.1 else directory(replica, chance.randint(0, 1))
            for replica in replicas
        ),
        leader_recovery_state=chance.choice([RECOVERED, RECOVERED, RECOVERING]),
        elr=elr,
        last_known_elr=(chance.choice(replicas),) if leader == NO_LEADER and chance.random() < 0.3 else (),
    )


def with_topics(image: MetadataImage, topics: dict[str, TopicImage]) -> MetadataImage:
    return replace(image, topics=topics, topics_by_id={topic.topic_id: topic for topic in topics.values()})


def alone(image: MetadataImage, name: str, index: int) -> MetadataImage:
    """The cluster as if there were no other partition: it is the only one of its topic, and that the only one."""
    topic = image.topics[name]
    return with_topics(image, {name: replace(topic, partitions=topic.partitions[index : index + 1])})
