"""Replay: what each record does to an image, and what it leaves alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, PartitionImage
from strandline.metadata.replay import replay

T1, T2 = Uuid(b"1" * 16), Uuid(b"2" * 16)
D1, D2 = Uuid(b"d" * 16), Uuid(b"e" * 16)
SECTIONS = ("topics", "topics_by_id", "brokers", "configs", "features", "others")


def partition(topic_id: Uuid, index: int, **fields: Any) -> r.PartitionRecord:
    values: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "leader_epoch": 3, "partition_epoch": 7}
    return r.PartitionRecord(partition_id=index, topic_id=topic_id, **{**values, **fields})


def registration(broker_id: int, **fields: Any) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=T1,
        broker_epoch=11,
        end_points=(r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),),
        features=(r.BrokerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1),),
        **fields,
    )


def config(name: str, value: str | None, resource: str = "a", kind: int = TOPIC_RESOURCE) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def play(image: MetadataImage, *records: r.MetadataRecord) -> MetadataImage:
    return replay(image, records, image.end_offset + len(records), 9)


@pytest.fixture
def image() -> MetadataImage:
    return play(
        MetadataImage(),
        r.FeatureLevelRecord(name="metadata.version", feature_level=30),
        registration(1),
        r.TopicRecord(name="a", topic_id=T1),
        partition(T1, 0),
        partition(T1, 1, eligible_leader_replicas=(2,), last_known_elr=(1,)),
        r.TopicRecord(name="b", topic_id=T2),
        partition(T2, 0, eligible_leader_replicas=(2,)),
        config("retention.ms", "5"),
    )


def changed(before: MetadataImage, *records: r.MetadataRecord) -> tuple[MetadataImage, set[str]]:
    """The next image, and the sections that it does not share with the one before."""
    frozen = {name: dict(getattr(before, name)) for name in SECTIONS}
    image = play(before, *records)
    assert {name: dict(getattr(before, name)) for name in SECTIONS} == frozen, "an image never changes"
    return image, {name for name in SECTIONS if getattr(image, name) is not getattr(before, name)}


def test_an_image_knows_where_it_ends(image: MetadataImage) -> None:
    assert (image.end_offset, image.epoch) == (8, 9)
    assert replay(image, [], 20, 10).end_offset == 20


def test_topics_and_partitions(image: MetadataImage) -> None:
    after, touched = changed(image, partition(T1, 2, replicas=(2,), directories=(D1,), leader_recovery_state=1))
    assert touched == {"topics", "topics_by_id"}
    assert after.topics["a"] is after.topics_by_id[T1]
    assert after.topics["b"] is image.topics["b"]
    assert after.topics["a"].partitions[:2] == image.topics["a"].partitions
    assert after.topics["a"].partitions[2] == PartitionImage(
        (2,), (1, 2), 1, 3, 7, directories=(D1,), leader_recovery_state=1
    )


def test_a_partition_record_replaces_one_that_is_there(image: MetadataImage) -> None:
    after, _ = changed(image, partition(T1, 0, replicas=(5,)))
    assert len(after.topics["a"].partitions) == 2
    assert after.topics["a"].partitions[0].replicas == (5,)


def test_partitions_share_what_is_equal(image: MetadataImage) -> None:
    numbers: Any = [tuple(range(5, 8)) for _ in range(4)]
    ids = [(Uuid(bytes(D1)), D2) for _ in range(2)]
    after = play(
        image,
        partition(T1, 2, replicas=numbers[0], isr=numbers[1], directories=ids[0]),
        r.PartitionChangeRecord(partition_id=0, topic_id=T1, replicas=numbers[2], isr=numbers[3], directories=ids[1]),
    )
    first, second = after.topics["a"].partitions[0], after.topics["a"].partitions[2]
    assert first.replicas is first.isr is second.replicas is second.isr
    assert first.directories is second.directories


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"isr": (1,)}, {"isr": (1,)}),
        ({"isr": ()}, {"isr": ()}),
        ({"leader": 2}, {"leader": 2, "leader_epoch": 4}),
        ({"leader": 1}, {"leader": 1, "leader_epoch": 4}),
        ({"leader": -1}, {"leader": -1, "leader_epoch": 4}),
        ({"replicas": (1, 2, 3), "adding_replicas": (3,)}, {"replicas": (1, 2, 3), "adding_replicas": (3,)}),
        ({"removing_replicas": (2,)}, {"removing_replicas": (2,)}),
        ({"leader_recovery_state": 1}, {"leader_recovery_state": 1}),
        ({"leader_recovery_state": 0}, {"leader_recovery_state": 0}),
        ({"directories": (D1, D2)}, {"directories": (D1, D2)}),
        ({"eligible_leader_replicas": (2,), "last_known_elr": (1,)}, {"elr": (2,), "last_known_elr": (1,)}),
    ],
)
def test_a_partition_change_raises_the_partition_epoch_and_with_a_leader_its_epoch(
    image: MetadataImage, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = image.topics["a"].partitions[0]
    after, _ = changed(image, r.PartitionChangeRecord(partition_id=0, topic_id=T1, **change))
    assert after.topics["a"].partitions[0] == dataclasses.replace(before, partition_epoch=8, **expected)
    assert after.topics["a"].partitions[1] is image.topics["a"].partitions[1]


def test_a_removed_topic_takes_its_configuration_along(image: MetadataImage) -> None:
    after, _ = changed(image, r.RemoveTopicRecord(topic_id=T1))
    assert (list(after.topics), list(after.topics_by_id), after.configs) == (["b"], [T2], {})
    again = play(after, r.TopicRecord(name="a", topic_id=D1))
    assert again.config(TOPIC_RESOURCE, "a") == {}


def test_configuration(image: MetadataImage) -> None:
    after, touched = changed(
        image,
        config("segment.ms", "7"),
        config("retention.ms", "6"),
        config("log.retention.ms", "1", "", BROKER_RESOURCE),
    )
    assert touched == {"configs"}
    assert image.config(TOPIC_RESOURCE, "a") == {"retention.ms": "5"}
    assert after.config(TOPIC_RESOURCE, "a") == {"retention.ms": "6", "segment.ms": "7"}
    assert after.config(BROKER_RESOURCE, "") == {"log.retention.ms": "1"}
    empty, _ = changed(after, config("segment.ms", None), config("retention.ms", None), config("never.set", None))
    assert list(empty.configs) == [(BROKER_RESOURCE, "")]


def test_features(image: MetadataImage) -> None:
    on, touched = changed(image, r.FeatureLevelRecord(name="group.version", feature_level=1))
    assert touched == {"features"}
    assert on.features == {"metadata.version": 30, "group.version": 1}
    assert play(on, r.FeatureLevelRecord(name="group.version", feature_level=0)).features == image.features


def test_producer_ids(image: MetadataImage) -> None:
    after, touched = changed(image, r.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000))
    assert (touched, after.next_producer_id) == (set(), 1000)


def test_brokers(image: MetadataImage) -> None:
    after, touched = changed(image, registration(2, rack="r", fenced=False, log_dirs=(D1, D2)))
    assert touched == {"brokers"}
    second = after.brokers[2]
    assert (second.epoch, second.rack, second.fenced, second.log_dirs) == (11, "r", False, (D1, D2))
    assert second.features == (("kraft.version", 0, 1),)
    assert (second.endpoints[0].host, second.endpoints[0].port) == ("h", 9092)
    gone = play(after, r.UnregisterBrokerRecord(broker_id=2, broker_epoch=11))
    assert list(gone.brokers) == [1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"fenced": -1}, {"fenced": False}),
        ({"fenced": 1}, {"fenced": True}),
        ({}, {}),
        ({"in_controlled_shutdown": 1}, {"in_controlled_shutdown": True}),
        ({"log_dirs": (D1,)}, {"log_dirs": (D1,)}),
        ({"cordoned_log_dirs": (D2,)}, {"cordoned_log_dirs": (D2,)}),
        ({"cordoned_log_dirs": ()}, {"cordoned_log_dirs": ()}),
        ({"cordoned_log_dirs": None}, {}),
    ],
)
def test_a_registration_changes(image: MetadataImage, change: dict[str, Any], expected: dict[str, Any]) -> None:
    image = play(image, registration(1, cordoned_log_dirs=(D1,)))
    after, touched = changed(image, r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, **change))
    assert touched == {"brokers"}
    assert after.brokers[1] == dataclasses.replace(image.brokers[1], **expected)


def test_the_old_records_that_fence(image: MetadataImage) -> None:
    unfenced = play(image, r.UnfenceBrokerRecord(id=1, epoch=11))
    assert not unfenced.brokers[1].fenced
    assert play(unfenced, r.FenceBrokerRecord(id=1, epoch=11)).brokers[1].fenced


@pytest.mark.parametrize(("name", "cleared"), [("a", {"a"}), ("", {"a", "b"}), ("other", set())])
def test_eligible_leaders_are_cleared(image: MetadataImage, name: str, cleared: set[str]) -> None:
    after, _ = changed(image, r.ClearElrRecord(topic_name=name))
    for topic in after.topics.values():
        left = [partition for partition in topic.partitions if partition.elr or partition.last_known_elr]
        assert bool(left) is (topic.name not in cleared)


KEPT: list[tuple[r.MetadataRecord, r.MetadataRecord | None]] = [
    (r.RegisterControllerRecord(controller_id=3, incarnation_id=T1, end_points=()), None),
    (
        r.ClientQuotaRecord(entity=(r.EntityData(entity_type="user", entity_name=None),), key="rate", value=1.0),
        r.ClientQuotaRecord(
            entity=(r.EntityData(entity_type="user", entity_name=None),), key="rate", value=0.0, remove=True
        ),
    ),
    (
        r.AccessControlEntryRecord(
            id=T1, resource_type=2, resource_name="a", pattern_type=3, principal="User:x", host="*", operation=3,
            permission_type=3,
        ),
        r.RemoveAccessControlEntryRecord(id=T1),
    ),
    (
        r.UserScramCredentialRecord(
            name="x", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        ),
        r.RemoveUserScramCredentialRecord(name="x", mechanism=1),
    ),
    (
        r.DelegationTokenRecord(
            owner="x", requester="x", issue_timestamp=1, max_timestamp=2, expiration_timestamp=3, token_id="t"
        ),
        r.RemoveDelegationTokenRecord(token_id="t"),
    ),
    (r.ZkMigrationStateRecord(zk_migration_state=0), None),
]  # fmt: skip


@pytest.mark.parametrize(("record", "removal"), KEPT, ids=[type(record).__name__ for record, _ in KEPT])
def test_records_of_other_parts_are_kept_until_removed(
    image: MetadataImage, record: r.MetadataRecord, removal: r.MetadataRecord | None
) -> None:
    after, touched = changed(image, record, record)
    assert touched == {"others"}
    assert list(after.others.values()) == [record]
    if removal is not None:
        gone, _ = changed(after, removal, removal)
        assert gone.others == {}


@pytest.mark.parametrize(
    "record", [r.NoOpRecord(), r.BeginTransactionRecord(), r.EndTransactionRecord(), r.AbortTransactionRecord()]
)
def test_records_without_a_meaning_for_the_image_change_nothing(image: MetadataImage, record: r.MetadataRecord) -> None:
    assert dataclasses.replace(play(image, record), end_offset=image.end_offset) == image


def test_every_kind_of_record_is_tested_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [cls.__name__ for cls in r.BY_KEY.values() if f"r.{cls.__name__}(" not in text] == []
