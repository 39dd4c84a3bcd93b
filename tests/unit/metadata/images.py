"""Random images, with something in every section."""

from __future__ import annotations

import random
from typing import Any

from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay


def an_image(seed: int, *, topics: int = 5, level: int = 30) -> MetadataImage:
    """What records drawn with this seed add up to."""
    return replay(MetadataImage(), records(random.Random(seed), topics, level), 1000 + seed, 7)


def records(chance: random.Random, topics: int, level: int) -> list[r.MetadataRecord]:
    drawn: list[r.MetadataRecord] = [
        r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        r.FeatureLevelRecord(name="metadata.version", feature_level=level),
    ]
    brokers = chance.sample(range(1000), chance.randint(0, 5))
    directories = {broker: Uuid.draw(chance) for broker in brokers}
    for broker in brokers:
        drawn.append(registration(chance, broker, directories[broker]))
        drawn.append(r.RegisterControllerRecord(controller_id=broker, incarnation_id=Uuid.draw(chance), end_points=()))
    for number in range(chance.randint(0, topics) if brokers else 0):
        topic_id = Uuid.draw(chance)
        drawn.append(r.TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        for index in range(chance.randint(1, 4)):
            drawn.append(partition(chance, topic_id, index, directories))
        if chance.random() < 0.5:
            kind, name = chance.choice([(2, f"topic-{number}"), (4, ""), (4, str(brokers[0]))])
            config: dict[str, Any] = {"resource_type": kind, "resource_name": name}
            drawn.append(r.ConfigRecord(name="retention.ms", value=str(chance.randint(0, 9)), **config))
            drawn.append(r.ConfigRecord(name="segment.ms", value="", **config))
    drawn += security(chance)
    if chance.random() < 0.5:
        drawn.append(r.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=chance.randint(1, 10**12)))
        drawn.append(r.ZkMigrationStateRecord(zk_migration_state=0))
    return drawn


def registration(chance: random.Random, broker: int, directory: Uuid) -> r.MetadataRecord:
    endpoint = r.BrokerEndpoint(name="PLAINTEXT", host="h", port=chance.randint(0, 65535), security_protocol=0)
    feature = r.BrokerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)
    return r.RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=Uuid.draw(chance),
        broker_epoch=chance.randint(0, 10**9),
        end_points=(endpoint,) * chance.randint(0, 2),
        features=(feature,) * chance.randint(0, 1),
        rack=chance.choice([None, "", "rack"]),
        fenced=chance.random() < 0.5,
        in_controlled_shutdown=chance.random() < 0.5,
        log_dirs=(directory,),
        cordoned_log_dirs=chance.choice([None, (), (directory,)]),
    )


def partition(chance: random.Random, topic_id: Uuid, index: int, directories: dict[int, Uuid]) -> r.MetadataRecord:
    replicas = tuple(chance.sample(sorted(directories), chance.randint(1, len(directories))))
    return r.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas[: chance.randint(0, len(replicas))],
        removing_replicas=replicas[:1] if chance.random() < 0.2 else (),
        adding_replicas=replicas[1:] if chance.random() < 0.2 else (),
        leader=chance.choice([-1, *replicas]),
        leader_recovery_state=chance.choice([0, 0, 1]),
        leader_epoch=chance.randint(0, 2**31 - 1),
        partition_epoch=chance.randint(0, 9),
        directories=tuple(directories[replica] for replica in replicas),
        eligible_leader_replicas=chance.choice([None, (), replicas]),
        last_known_elr=chance.choice([None, replicas[:1]]),
    )


def security(chance: random.Random) -> list[r.MetadataRecord]:
    entity = r.EntityData(entity_type="user", entity_name=chance.choice([None, "x"]))
    drawn: list[r.MetadataRecord] = [
        r.ClientQuotaRecord(entity=(entity,), key="producer_byte_rate", value=chance.random()),
        r.AccessControlEntryRecord(
            id=Uuid.draw(chance), resource_type=2, resource_name="a", pattern_type=3, principal="User:x", host="*",
            operation=3, permission_type=3,
        ),
        r.UserScramCredentialRecord(
            name="x", mechanism=1, salt=chance.randbytes(8), stored_key=b"k", server_key=b"v", iterations=4096
        ),
        r.DelegationTokenRecord(
            owner="x", requester="y", renewers=("z",), issue_timestamp=1, max_timestamp=2, expiration_timestamp=3,
            token_id="t",
        ),
    ]  # fmt: skip
    return chance.sample(drawn, chance.randint(0, len(drawn)))
