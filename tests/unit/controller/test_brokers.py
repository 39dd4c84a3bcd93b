"""Brokers that come and go: who is let in, with which epoch, and what becomes of what they led."""

# mypy: disable-error-code="assignment"

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.controller.brokers import (
    BrokerRegistration,
    check_epoch,
    check_features,
    fence,
    fence_one_overdue,
    register,
    unregister,
)
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata import records as r
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import Endpoint, MetadataImage, PartitionImage, TopicImage

from .conftest import after, broker, cluster

TOPIC_ID, DIR, OTHER_DIR = Uuid(bytes(15) + b"\x07"), Uuid(bytes([8]) * 16), Uuid(bytes([9]) * 16)
FEATURES = [("metadata.version", 7, 30), ("kraft.version", 0, 1), ("eligible.leader.replicas.version", 0, 1)]
ENDPOINT = Endpoint("PLAINTEXT", "n1", 9092, 0)
WANTED = BrokerRegistration(1, Uuid(bytes([9]) * 16), [ENDPOINT], FEATURES, [DIR], "rack")
LED = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=4, partition_epoch=6)
SHARED = PartitionImage(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=6)
LEVELS = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
POLICY = ElectionPolicy(default_min_isr=2, elr_enabled=True)


def hosting(*partitions: PartitionImage, brokers: tuple[Any, ...] = (broker(1), broker(2))) -> MetadataImage:
    topic = TopicImage("t", TOPIC_ID, partitions)
    return replace(
        cluster(*brokers), end_offset=42, features=LEVELS, topics={"t": topic}, topics_by_id={TOPIC_ID: topic}
    )


EMPTY = replace(MetadataImage(), end_offset=42, features=LEVELS)


def registering(
    image: MetadataImage, wanted: BrokerRegistration = WANTED, *, is_live: bool = False, kraft_version: int = 1
) -> tuple[list[r.MetadataRecord], int]:
    return register(image, wanted, POLICY, is_live=is_live, kraft_version=kraft_version)


# Registration


def test_b12_a_new_broker_is_fenced_and_its_epoch_is_the_offset_of_its_record() -> None:
    records, epoch = registering(EMPTY)
    (record,) = records
    assert isinstance(record, r.RegisterBrokerRecord)
    found = after(EMPTY, records).brokers[1]
    assert (epoch, found.epoch, found.fenced, found.in_controlled_shutdown) == (42, 42, True, False)
    assert (found.incarnation_id, found.rack, found.log_dirs) == (WANTED.incarnation_id, "rack", (DIR,))
    assert (list(found.endpoints), list(found.features)) == (WANTED.endpoints, WANTED.features)


def test_b12_the_epoch_is_the_offset_of_the_record_also_behind_others() -> None:
    records, epoch = registering(hosting(SHARED, SHARED))
    assert len(records) == 3
    assert isinstance(records[-1], r.RegisterBrokerRecord), "if the log ends before it, the broker registers again"
    assert epoch == records[-1].broker_epoch == 42 + 2


@pytest.mark.parametrize(
    ("previous_broker_epoch", "elr"),
    [(1, (1,)), (0, ()), (-1, ())],
    ids=["stopped in order", "another epoch", "does not know"],
)
def test_b11_an_unexpected_previous_epoch_is_an_unclean_restart(
    previous_broker_epoch: int, elr: tuple[int, ...]
) -> None:
    image = hosting(SHARED)
    records, _ = registering(image, WANTED._replace(previous_broker_epoch=previous_broker_epoch))
    (partition,) = after(image, records).topics["t"].partitions
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), elr)
    assert partition.leader_epoch == 5


def test_b12_another_incarnation_waits_until_the_session_is_over() -> None:
    with pytest.raises(KafkaError) as raised:
        registering(hosting(), is_live=True)
    assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert registering(hosting(), is_live=False)[1] == 42


def test_b12_the_same_incarnation_may_ask_again() -> None:
    image = after(EMPTY, registering(EMPTY)[0])
    assert registering(image, is_live=True) == ([], 42)
    unfenced = after(image, [r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=42, fenced=-1)])
    assert registering(unfenced, is_live=True) == ([], 42)


@pytest.mark.parametrize(
    "change",
    [{"rack": "other"}, {"endpoints": [replace(ENDPOINT, port=1)]}],
    ids=["rack", "endpoint"],
)
def test_the_same_incarnation_may_move(change: dict[str, Any]) -> None:
    image = after(EMPTY, registering(EMPTY)[0])
    image = after(image, [r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=42, fenced=-1)])
    wanted = WANTED._replace(**change)
    records, epoch = registering(image, wanted, is_live=True)
    found = after(image, records).brokers[1]
    assert (epoch, found.epoch, found.fenced) == (42, 42, False), "all else stays"
    assert (found.rack, list(found.endpoints)) == (wanted.rack, wanted.endpoints)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"endpoints": []}, ErrorCode.INVALID_REGISTRATION),
        ({"endpoints": [ENDPOINT, ENDPOINT]}, ErrorCode.INVALID_REGISTRATION),
        ({"endpoints": [replace(ENDPOINT, security_protocol=4)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [DIR, DIR]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [ZERO_UUID]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [Uuid(bytes(15) + bytes([99]))]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [DIR, OTHER_DIR]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": FEATURES[1:]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [("metadata.version", 7, 29), *FEATURES[1:]]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [*FEATURES, ("newer", 1, 2)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": FEATURES[:2]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [FEATURES[0], FEATURES[2]]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=[
        "no listener",
        "listener twice",
        "unknown security protocol",
        "no log dir",
        "log dir twice",
        "log dir zero",
        "reserved log dir",
        "another broker's log dir",
        "no metadata.version",
        "metadata.version too old",
        "feature that can't be off",
        "finalized feature unknown",
        "kraft.version unknown",
    ],
)
def test_a_broker_that_can_not_take_part_is_refused(change: dict[str, Any], code: ErrorCode) -> None:
    image = replace(cluster(broker(2, log_dirs=(OTHER_DIR,))), features=LEVELS)
    with pytest.raises(KafkaError) as raised:
        registering(image, WANTED._replace(**change))
    assert raised.value.code is code


def test_a_feature_at_level_0_need_not_be_known() -> None:
    wanted = WANTED._replace(features=[FEATURES[0], FEATURES[2]], log_dirs=[DIR])
    assert registering(EMPTY, wanted, kraft_version=0)[1] == 42


def test_old_metadata_knows_no_log_dirs() -> None:
    old = replace(EMPTY, features={"metadata.version": 16})
    (record,), _ = registering(old, WANTED._replace(log_dirs=[]))
    assert isinstance(record, r.RegisterBrokerRecord)
    assert record.log_dirs == ()


def test_b13_only_the_newest_epoch_counts() -> None:
    image = hosting()
    assert check_epoch(image, 2, 2) is image.brokers[2]
    for broker_id, epoch in [(2, 1), (2, 3), (3, 3)]:
        with pytest.raises(KafkaError) as raised:
            check_epoch(image, broker_id, epoch)
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


# The end


def test_b13_a_fenced_broker_leaves_isr_and_leadership_in_the_same_decision() -> None:
    image = hosting(SHARED, replace(SHARED, leader=2))
    image = after(image, fence(image, 1, POLICY))
    assert image.brokers[1].fenced
    assert [(p.leader, p.isr, p.leader_epoch) for p in image.topics["t"].partitions] == [(2, (2,), 5), (2, (2,), 4)]


@pytest.mark.parametrize("broker_id", [1, 3], ids=["fenced", "not registered"])
def test_who_is_fenced_or_gone_is_not_fenced_again(broker_id: int) -> None:
    assert fence(hosting(brokers=(broker(1, fenced=True),)), broker_id, POLICY) == []


def test_overdue_brokers_are_fenced_one_at_a_time_and_those_who_are_gone_are_passed_over() -> None:
    image = hosting(brokers=(broker(1), broker(2), broker(3), broker(4, fenced=True)))
    liveness = Liveness(3.0)
    for broker_id, heard in [(4, 0.0), (9, 0.1), (2, 0.2), (1, 0.3), (3, 2.0)]:
        liveness.contact(broker_id, broker_id, heard)
    fenced = []
    for _ in range(3):
        records, broker_id = fence_one_overdue(image, liveness, 4.0, POLICY)
        image = after(image, records)
        fenced.append(broker_id)
    assert fenced == [2, 1, None]
    assert [b.broker_id for b in image.brokers.values() if not b.fenced] == [3]
    assert liveness.overdue(4.0) == []


def test_an_unregistered_broker_leaves_isr_and_elr() -> None:
    lost = replace(SHARED, isr=(2,), elr=(1,), leader=2)
    image = hosting(SHARED, lost)
    image = after(image, unregister(image, 1, POLICY))
    assert 1 not in image.brokers
    assert [(p.leader, p.isr, p.elr) for p in image.topics["t"].partitions] == [(2, (2,), ()), (2, (2,), ())]
    with pytest.raises(KafkaError) as raised:
        unregister(image, 1, POLICY)
    assert raised.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_feature_that_only_kafka_serves_binds_nobody() -> None:
    supported = [(METADATA_VERSION, 7, 30)]
    check_features(supported, {METADATA_VERSION: 30, "share.version": 1})
    with pytest.raises(KafkaError, match="at level 31"):
        check_features(supported, {METADATA_VERSION: 31})
