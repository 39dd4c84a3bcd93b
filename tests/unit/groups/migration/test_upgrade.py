from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMemberState
from strandline.groups.migration import embedded_protocol
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from strandline.ids import Uuid
from strandline.wire import messages
from tests.unit.groups.driver import Call, Driver
from tests.unit.groups.migration.consumers import (
    CONSUMER_GROUP_HEARTBEAT,
    GROUP,
    JOIN_GROUP,
    ClassicConsumer,
    Crowd,
    driver_of,
    heartbeat,
    image_of,
    subscription_of,
)

IMAGE = image_of(a=4, b=2)
A, B = IMAGE.topics["a"].topic_id, IMAGE.topics["b"].topic_id


def member(
    member_id: str,
    assigned: dict[Uuid, Iterable[int]] | None,
    subscription: bytes = b"",
    *,
    instance_id: str | None = None,
    assignment: bytes | None = None,
) -> MemberMetadata:
    if assignment is None:
        assignment = b"" if assigned is None else embedded_protocol.encode_assignment(assigned, IMAGE, 1)
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="classic",
        client_host="/10.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=subscription or subscription_of(["a", "b"]),
        assignment=assignment,
    )


def driver_with(*members: MemberMetadata, protocol_type: str = "consumer", **settings: str) -> Driver:
    """A coordinator that read this classic group back."""
    driver = driver_of(IMAGE, **settings)
    value = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=7,
        protocol="range",
        leader=members[0].member_id if members else None,
        current_state_timestamp=0,
        members=members,
    )
    driver.shard.replay(CoordinatorRecord(GroupMetadataKey(group=GROUP), value), 0)
    driver.carry_out(driver.shard.loaded(driver.at))
    return driver


def join(driver: Driver, member_id: str = "new", **fields: Any) -> Any:
    Request = messages.request(CONSUMER_GROUP_HEARTBEAT)
    fields = {"subscribed_topic_names": ["a", "b"], "topic_partitions": [], **fields}
    request = Request(group_id=GROUP, member_id=member_id, member_epoch=0, rebalance_timeout_ms=60_000, **fields)
    return heartbeat(driver, request)


def upgraded(driver: Driver) -> ConsumerGroup:
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def test_members_stay_with_what_they_have_in_the_epoch_of_their_generation() -> None:
    driver = driver_with(member("m1", {A: [0, 1, 2, 3]}), member("m2", {B: [0, 1]}, instance_id="i2"))
    assert join(driver).member_epoch == 8
    group = upgraded(driver)
    m1, m2 = group.members["m1"], group.members["m2"]
    assert (m1.member_epoch, m1.state, m1.client_id, m1.client_host) == (
        7,
        ConsumerGroupMemberState.STABLE,
        "classic",
        "/10.0.0.1",
    )
    assert (m1.rebalance_timeout_ms, m1.subscribed_topic_names) == (60_000, frozenset({"a", "b"}))
    assert m1.assigned_partitions == {A: dict.fromkeys(range(4), 7)}
    assert m2.instance_id == "i2"
    assert group.static_members == {"i2": "m2"}
    metadata = m1.classic_member_metadata
    assert metadata is not None
    assert metadata.session_timeout_ms == 10_000
    assert [protocol.name for protocol in metadata.supported_protocols] == ["range"]
    assert (group.group_epoch, group.assignment_epoch) == (8, 8)
    assert group.members["new"].state is ConsumerGroupMemberState.UNRELEASED_PARTITIONS, (
        "its share is still with the others"
    )


def test_the_offsets_and_the_group_survive_a_change_of_coordinator() -> None:
    driver = driver_with(member("m1", {A: [0, 1, 2, 3], B: [0, 1]}))
    join(driver)
    before = upgraded(driver)
    driver.reload()
    after = upgraded(driver)
    assert after.members == before.members
    assert after.target_assignment == before.target_assignment


def test_a_member_that_is_silent_is_fenced_when_its_own_session_timeout_has_passed() -> None:
    driver = driver_with(member("m1", {A: [0, 1, 2, 3], B: [0, 1]}))
    join(driver)
    driver.advance(9.9)
    assert "m1" in upgraded(driver).members
    driver.advance(0.2)
    assert "m1" not in upgraded(driver).members


def test_a_static_member_that_comes_back_with_the_new_protocol_changes_nothing_for_the_others() -> None:
    driver = driver_with(member("m1", {A: [0, 1, 2, 3]}, instance_id="i1"), member("m2", {B: [0, 1]}))
    response = join(driver, instance_id="i1")
    assert (response.member_epoch, upgraded(driver).group_epoch) == (7, 7)
    assert [(topic.topic_id, topic.partitions) for topic in response.assignment.topic_partitions] == [(A, [0, 1, 2, 3])]
    assert set(upgraded(driver).members) == {"new", "m2"}


def test_a_static_member_that_comes_back_while_partitions_are_nobodys_brings_a_new_target() -> None:
    driver = driver_with(member("m1", {A: [0, 1]}, instance_id="i1"), member("m2", {B: [0]}))
    assert join(driver, instance_id="i1").member_epoch == 8
    targets = upgraded(driver).target_assignment.values()
    assert sum(len(partitions) for target in targets for partitions in target.values()) == 6


def test_what_a_member_may_still_own_from_before_its_rebalance_is_nobody_elses_until_it_joins_without_it() -> None:
    """The leader took a-3 from it; whether it has let go by now, nobody knows."""
    owns = subscription_of(["a", "b"], [("a", number) for number in range(4)])
    driver = driver_with(member("m1", {A: [0, 1, 2]}, owns), member("m2", {B: [0, 1]}))
    join(driver)
    m1 = upgraded(driver).members["m1"]
    assert (m1.state, m1.partitions_pending_revocation) == (ConsumerGroupMemberState.UNREVOKED_PARTITIONS, {A: {3: 7}})
    assert upgraded(driver).owner(A, 3) == "m1"


def test_an_assignment_counts_more_than_what_another_says_it_owns() -> None:
    owns = subscription_of(["a", "b"], [("a", 3)])
    driver = driver_with(member("m1", {A: [0, 1, 2]}, owns), member("m2", {A: [3], B: [0, 1]}))
    join(driver)
    assert upgraded(driver).members["m1"].partitions_pending_revocation == {}
    assert upgraded(driver).owner(A, 3) == "m2"


def test_topics_that_are_gone_are_forgotten() -> None:
    assignment = embedded_protocol.encode_assignment({A: [0], Uuid(bytes(15) + b"\x09"): [1]}, IMAGE, 1)
    driver = driver_with(member("m1", None, subscription_of(["a", "gone"]), assignment=assignment))
    join(driver)
    assert upgraded(driver).members["m1"].assigned_partitions == {A: {0: 7}}


def test_an_empty_group_becomes_one_of_the_consumer_protocol_whatever_the_policy() -> None:
    driver = driver_with(protocol_type="connect", group_consumer_migration_policy="disabled")
    assert join(driver).member_epoch >= 1
    assert set(upgraded(driver).members) == {"new"}


@pytest.mark.parametrize(
    ("settings", "protocol_type", "said"),
    [
        ({"group_consumer_migration_policy": "disabled"}, "consumer", "online upgrade is disabled"),
        ({"group_consumer_migration_policy": "DOWNGRADE"}, "consumer", "online upgrade is disabled"),
        ({}, "connect", "does not use the consumer embedded protocol"),
        ({"group_consumer_max_size": "1"}, "consumer", "exceeds the consumer group maximum size"),
    ],
)
def test_a_group_that_may_not_be_upgraded_stays_as_it_is(
    settings: dict[str, str], protocol_type: str, said: str
) -> None:
    driver = driver_with(member("m1", {A: [0]}), member("m2", None), protocol_type=protocol_type, **settings)
    response = join(driver)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert said in response.error_message
    assert isinstance(driver.shard.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize("policy", ["upgrade", "BIDIRECTIONAL"])
def test_policies_that_allow_it(policy: str) -> None:
    driver = driver_with(member("m1", {A: [0]}), group_consumer_migration_policy=policy)
    assert join(driver).error_code == 0


def _custom_assignment() -> bytes:
    Assignment = messages.data("ConsumerProtocolAssignment")
    message = Assignment(assigned_partitions=[], user_data=b"mine")
    return b"\x00\x01" + messages.encode_data("ConsumerProtocolAssignment", 1, message)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([member("m1", None, assignment=_custom_assignment())], "unsupported custom assignor"),
        ([member("m1", None, assignment=b"\x00\x01\x00")], "malformed"),
        ([member("m1", None, b"\x00")], "malformed"),
        ([member("m1", {A: [0]}), member("m2", {A: [0]})], "more than one of its members"),
    ],
)
def test_assignments_that_would_be_lost_are_not_touched(members: list[MemberMetadata], said: str) -> None:
    driver = driver_with(*members)
    response = join(driver)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert said in response.error_message


def test_who_waits_for_the_classic_group_is_told_to_join_again() -> None:
    driver = driver_of(IMAGE)
    crowd = Crowd(driver)
    first, second = (ClassicConsumer(driver, name, ["a", "b"]) for name in ("c1", "c2"))
    crowd.add(first)
    crowd.settle()
    second.step()
    second.step()
    second.step()
    assert second._joining is not None
    assert not second._joining.is_answered, "it waits for the other"
    join(driver)
    assert second._joining.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.member_id in upgraded(driver).members


def test_nothing_changes_if_the_records_are_refused() -> None:
    driver = driver_with(member("m1", {A: [0, 1, 2, 3], B: [0, 1]}))
    driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert join(driver).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state_name() == "Stable"
    driver.refuses = None
    driver.advance(9)
    assert set(group.members) == {"m1"}, "no timer of the group that never was"


def test_a_member_that_no_longer_supports_the_protocol_of_a_generation_that_ends() -> None:
    driver = driver_of(IMAGE)
    range_and_sticky = dict.fromkeys(("range", "sticky"), subscription_of(["a"]))
    first, second = (classic_join(driver, "", range_and_sticky) for _ in range(2))
    driver.advance(1)
    assert first.response.protocol_name == second.response.protocol_name == "range"
    classic_join(driver, first.response.member_id, {"sticky": subscription_of(["a"])})
    assert driver.shard.groups[GROUP].state_name() == "PreparingRebalance"
    assert join(driver).error_code == ErrorCode.NONE
    assert upgraded(driver).classic_members_count == 2


def test_a_protocol_that_can_not_be_read_stays_in_a_classic_group() -> None:
    """It could be the one that all have in common, should the group become a classic one again."""
    driver = driver_of(IMAGE)
    classic_join(driver, "", {"range": subscription_of(["a"]), "sticky": b""})
    driver.advance(1)
    assert join(driver).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def classic_join(driver: Driver, member_id: str, protocols: dict[str, bytes]) -> Call:
    Request = messages.request(JOIN_GROUP)
    listed = [Request.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()]
    request = Request(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=listed,
    )
    return driver.call("join_group", request, version=3)
