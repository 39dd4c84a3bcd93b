"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup to a group of the consumer protocol."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMemberState
from strandline.wire import messages
from tests.unit.groups.driver import Call, Driver
from tests.unit.groups.migration.consumers import (
    GROUP,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
    ModernConsumer,
    Partition,
    assigned_in,
    driver_of,
    image_of,
    subscription_of,
)

IMAGE = image_of(a=4)


def group_with_modern(**settings: str) -> tuple[Driver, ModernConsumer]:
    driver = driver_of(IMAGE, **settings)
    modern = ModernConsumer(driver, "n", ["a"])
    modern.step()
    return driver, modern


def join(
    driver: Driver,
    member_id: str = "",
    *,
    owned: Iterable[Partition] = (),
    protocols: dict[str, bytes] | None = None,
    version: int = 9,
    **fields: Any,
) -> Call:
    Request = messages.request(JOIN_GROUP)
    if protocols is None:
        protocols = {"range": subscription_of(["a"], owned)}
    listed = [Request.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()]
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **fields}
    fields.setdefault("group_instance_id", None)
    return driver.call("join_group", Request(group_id=GROUP, member_id=member_id, protocols=listed, **fields), version)


def joined(driver: Driver, owned: Iterable[Partition] = ()) -> tuple[str, int]:
    """A new dynamic member: its id and generation."""
    member_id = join(driver).response.member_id
    response = join(driver, member_id, owned=owned).response
    assert not response.error_code
    return response.member_id, response.generation_id


def sync(driver: Driver, member_id: str, generation_id: int, **fields: Any) -> Call:
    fields = {"protocol_type": "consumer", "protocol_name": "range", "group_instance_id": None, **fields}
    request = messages.request(SYNC_GROUP)(
        group_id=GROUP, member_id=member_id, generation_id=generation_id, assignments=[], **fields
    )
    return driver.call("sync_group", request, version=5)


def heartbeat(driver: Driver, member_id: str, generation_id: int, instance_id: str | None = None) -> ErrorCode:
    request = messages.request(HEARTBEAT)(
        group_id=GROUP, member_id=member_id, generation_id=generation_id, group_instance_id=instance_id
    )
    return driver.call("heartbeat", request, version=4).code


def leave(driver: Driver, *identities: tuple[str, str | None], version: int = 5) -> Call:
    Request = messages.request(LEAVE_GROUP)
    listed = [
        Request.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        for member_id, instance_id in identities
    ]
    return driver.call("leave_group", Request(group_id=GROUP, members=listed), version)


def group_of(driver: Driver) -> ConsumerGroup:
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


# Joining


def test_a_dynamic_member_is_given_an_id_first() -> None:
    driver, _ = group_with_modern()
    required = join(driver)
    assert required.code is ErrorCode.MEMBER_ID_REQUIRED
    member_id = required.response.member_id
    assert member_id not in group_of(driver).members
    epoch = group_of(driver).group_epoch
    response = join(driver, member_id).response
    assert (response.error_code, response.member_id, response.generation_id) == (ErrorCode.NONE, member_id, epoch + 1)
    assert (response.protocol_type, response.protocol_name, response.leader, response.members) == (
        "consumer",
        "range",
        "",
        [],
    )
    member = group_of(driver).members[member_id]
    assert (member.uses_classic_protocol, member.rebalance_timeout_ms, member.state) == (
        True,
        60_000,
        ConsumerGroupMemberState.UNRELEASED_PARTITIONS,
    )


def test_before_version_4_it_joins_at_once() -> None:
    driver, _ = group_with_modern()
    assert join(driver, version=3).code is ErrorCode.NONE
    assert len(group_of(driver).members) == 2


def test_nothing_is_told_before_it_is_committed() -> None:
    driver, _ = group_with_modern()
    member_id = join(driver).response.member_id
    driver.hold()
    join_call = join(driver, member_id)
    sync_call = sync(driver, member_id, group_of(driver).group_epoch)
    assert not join_call.is_answered
    assert not sync_call.is_answered
    driver.commit()
    assert join_call.code is ErrorCode.NONE
    assert sync_call.code is ErrorCode.NONE


def test_a_join_that_can_not_be_written_says_so() -> None:
    driver, _ = group_with_modern()
    driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert join(driver, "me").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "me" not in group_of(driver).members


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b"\x00"}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b"\x00\x01\x00"}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_join(fields: dict[str, Any], code: ErrorCode) -> None:
    driver, _ = group_with_modern()
    call = join(driver, "me", **fields)
    assert call.code is code
    assert call.response.member_id == "me"
    assert set(group_of(driver).members) == {"n-id"}


def test_without_migration_no_classic_member_may_join() -> None:
    driver, _ = group_with_modern(group_consumer_migration_policy="disabled")
    assert join(driver).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_else() -> None:
    driver, _ = group_with_modern(group_consumer_max_size="1")
    assert join(driver).code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_all_classic_members_share_a_protocol() -> None:
    driver, _ = group_with_modern()
    metadata = subscription_of(["a"])
    both = {"range": metadata, "roundrobin": metadata}
    assert join(driver, "m1", protocols=both).code is ErrorCode.NONE
    assert join(driver, "m2", protocols={"range": metadata}).code is ErrorCode.NONE
    assert join(driver, "m3", protocols={"roundrobin": metadata}).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_becomes_a_classic_one() -> None:
    driver, modern = group_with_modern()
    modern.leave()
    assert join(driver).code is ErrorCode.MEMBER_ID_REQUIRED
    assert isinstance(driver.shard.groups[GROUP], ClassicGroup)
    driver.reload()
    assert isinstance(driver.shard.groups[GROUP], ClassicGroup)


def test_an_empty_group_stays_if_that_can_not_be_written() -> None:
    driver, modern = group_with_modern()
    modern.leave()
    driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert join(driver).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(driver).is_empty()


def test_a_static_member_takes_the_place_of_the_one_it_was() -> None:
    driver, modern = group_with_modern()
    first = join(driver, group_instance_id="i").response
    modern.step()
    modern.step()
    join(driver, first.member_id, group_instance_id="i")
    second = join(driver, group_instance_id="i").response
    assert second.member_id != first.member_id
    group = group_of(driver)
    assert group.static_members == {"i": second.member_id}
    assert group.group_epoch == second.generation_id == first.generation_id, "it wants what it did"
    assert heartbeat(driver, first.member_id, first.generation_id, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert join(driver, first.member_id, group_instance_id="i").code is ErrorCode.FENCED_INSTANCE_ID
    assert sync(driver, second.member_id, second.generation_id, group_instance_id="i").code is ErrorCode.NONE


# The way of a partition


def test_a_partition_goes_from_one_to_the_other_by_joins_and_heartbeats() -> None:
    driver, modern = group_with_modern()
    member_id, generation_id = joined(driver)
    assert assigned_in(sync(driver, member_id, generation_id).response.assignment) == set()
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.NONE, "the other has them"
    modern.step()
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.NONE, "it was told, but did not say that it let go"
    modern.step()
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert join(driver, member_id).response.generation_id == generation_id
    got = assigned_in(sync(driver, member_id, generation_id).response.assignment)
    assert len(got) == 2
    assert got.isdisjoint(modern.owned)
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.NONE

    other_id, other_generation = joined(driver)
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    again = join(driver, member_id, owned=got).response.generation_id
    kept = assigned_in(sync(driver, member_id, again).response.assignment)
    if kept != got:
        assert again == generation_id, "it has to let go before it gets to the next epoch"
        assert heartbeat(driver, member_id, again) is ErrorCode.REBALANCE_IN_PROGRESS
        assert heartbeat(driver, other_id, other_generation) is ErrorCode.NONE
        assert join(driver, member_id, owned=kept).response.generation_id == other_generation
        assert heartbeat(driver, other_id, other_generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_new_partitions_are_noticed_by_the_heartbeats_of_classic_members_too() -> None:
    driver, modern = group_with_modern(group_consumer_migration_policy="upgrade")
    member_id, generation_id = joined(driver)
    modern.leave()
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    generation_id = join(driver, member_id).response.generation_id
    assert len(assigned_in(sync(driver, member_id, generation_id).response.assignment)) == 4
    driver.around.image = dataclasses.replace(image_of(a=6), end_offset=1)
    driver.carry_out(driver.shard.metadata_changed(driver.around.image, frozenset(), driver.at))
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    generation_id = join(driver, member_id, owned=[("a", number) for number in range(4)]).response.generation_id
    assert len(assigned_in(sync(driver, member_id, generation_id).response.assignment)) == 6


# Syncing and heartbeats


def test_an_assignment_is_in_the_version_of_the_subscription() -> None:
    driver, _ = group_with_modern()
    member_id = "me"
    response = join(driver, member_id, protocols={"range": subscription_of(["a"], version=0)}).response
    assert sync(driver, member_id, response.generation_id).response.assignment[:2] == b"\x00\x00"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_sync(fields: dict[str, Any], code: ErrorCode) -> None:
    driver, _ = group_with_modern()
    member_id, generation_id = joined(driver)
    assert sync(driver, member_id, generation_id, **fields).code is code
    assert sync(driver, member_id, generation_id - 1).code is ErrorCode.ILLEGAL_GENERATION
    assert sync(driver, "nobody", generation_id).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_that_comes_after_the_next_target_is_told_to_join_again() -> None:
    driver, _ = group_with_modern()
    member_id, generation_id = joined(driver)
    joined(driver)
    assert sync(driver, member_id, generation_id).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_of_the_consumer_protocol_does_not_send_these() -> None:
    driver, modern = group_with_modern()
    assert heartbeat(driver, modern.member_id, modern.member_epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(driver, modern.member_id, modern.member_epoch).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(driver, "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_another_generation_is_refused() -> None:
    driver, _ = group_with_modern()
    member_id, generation_id = joined(driver)
    assert heartbeat(driver, member_id, generation_id + 1) is ErrorCode.ILLEGAL_GENERATION


# Timeouts


def test_a_member_that_does_not_sync_within_its_rebalance_timeout_is_fenced() -> None:
    driver, modern = group_with_modern()
    member_id, generation_id = joined(driver)
    for _ in range(59):
        driver.advance(1)
        modern.step()
        heartbeat(driver, member_id, generation_id)
    assert member_id in group_of(driver).members
    driver.advance(1.1)
    assert heartbeat(driver, member_id, generation_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_syncs_stays_as_long_as_it_is_heard_from() -> None:
    driver, modern = group_with_modern()
    member_id, generation_id = joined(driver)
    modern.step()
    modern.step()
    join(driver, member_id)
    sync(driver, member_id, generation_id)
    for _ in range(8):
        driver.advance(9)
        modern.step()
        assert heartbeat(driver, member_id, generation_id) is ErrorCode.NONE
    driver.advance(10.1)
    assert member_id not in group_of(driver).members


def test_a_fencing_that_can_not_be_written_is_tried_again() -> None:
    driver, modern = group_with_modern()
    member_id, generation_id = joined(driver)
    for _ in range(59):
        driver.advance(1)
        modern.step()
        heartbeat(driver, member_id, generation_id)
    driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.advance(1.1)
    assert member_id in group_of(driver).members
    driver.refuses = None
    driver.advance(0.5)
    assert member_id not in group_of(driver).members


# Leaving


def test_several_leave_at_once_with_one_epoch() -> None:
    driver, _ = group_with_modern()
    m1, _ = joined(driver)
    m2 = join(driver, group_instance_id="i").response.member_id
    epoch = group_of(driver).group_epoch
    response = leave(driver, (m1, None), ("", "i"), ("nobody", None), ("x", "i"), ("", "j")).response
    assert [member.error_code for member in response.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    group = group_of(driver)
    assert group.group_epoch == epoch + 1
    assert m1 not in group.members
    assert m2 not in group.members


def test_nobody_leaves_and_nothing_changes() -> None:
    driver, _ = group_with_modern()
    epoch = group_of(driver).group_epoch
    assert leave(driver, ("nobody", None)).response.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group_of(driver).group_epoch == epoch


def test_the_last_one_leaves_an_empty_group() -> None:
    driver, modern = group_with_modern(group_consumer_migration_policy="upgrade")
    member_id, _ = joined(driver)
    modern.leave()
    leave(driver, (member_id, None))
    assert group_of(driver).is_empty()


def test_each_protocol_of_a_member_has_to_be_readable() -> None:
    """It may become the one that all have in common; the group could not become a classic one then."""
    driver, _ = group_with_modern()
    protocols = {"range": subscription_of(["a"]), "sticky": b""}
    assert join(driver, "m", protocols=protocols).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
