"""What offsets, listing and deletion ask of a classic group."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic.group import DEAD, EMPTY, PREPARING_REBALANCE, STABLE, ClassicGroup
from strandline.groups.classic.member import ClassicMember
from strandline.groups.group import GroupLike, OffsetExpiration
from strandline.groups.records import GroupMetadataKey
from tests.unit.groups.classic.transcript import Stage, subscription


def member_of(member_id: str, *, instance_id: str | None = None, **protocols: bytes) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        supported_protocols=protocols or {"range": subscription("t")},
    )


def stable_group(*members: ClassicMember) -> ClassicGroup:
    return ClassicGroup(
        "g",
        7,
        state=STABLE,
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        members=members or [member_of("m"), member_of("s", instance_id="i")],
    )


def refused(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        work()
    return caught.value.code


def may_commit(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, txn: bool = False
) -> None:
    assert group.validate_offset_commit(member_id, instance_id, generation, is_transactional=txn, version=9) is None


def test_it_is_a_group() -> None:
    group: GroupLike = stable_group()
    assert (group.group_id, group.group_type, group.protocol_type) == ("g", "classic", "consumer")
    assert group.state_name() == "Stable"
    assert group.tombstones() == [CoordinatorRecord(GroupMetadataKey(group="g"), None)]


def test_members_commit_in_their_generation() -> None:
    group = stable_group()
    may_commit(group, "m", None, 3)
    may_commit(group, "s", "i", 3)
    assert refused(lambda: may_commit(group, "m", None, 2)) is ErrorCode.ILLEGAL_GENERATION
    assert refused(lambda: may_commit(group, "m", None, -1)) is ErrorCode.ILLEGAL_GENERATION
    assert refused(lambda: may_commit(group, "x", None, 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: may_commit(group, "m", "i", 3)) is ErrorCode.FENCED_INSTANCE_ID
    assert refused(lambda: may_commit(group, "m", "j", 3)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_no_member_commits_while_there_are_none() -> None:
    may_commit(ClassicGroup("g", 7), "", None, -1)
    assert refused(lambda: may_commit(ClassicGroup("g", 7), "m", None, 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: may_commit(stable_group(), "", None, -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    # Old transactional producers don't say who they are.
    may_commit(stable_group(), "", None, -1, txn=True)


def test_nobody_commits_between_join_and_sync() -> None:
    stage = Stage()
    for line in ("join a v=3", "tick 3"):
        stage.perform(line)
    (member_id,) = stage.group.members
    assert refused(lambda: may_commit(stage.group, member_id, None, 1)) is ErrorCode.REBALANCE_IN_PROGRESS
    may_commit(stage.group, member_id, None, 1, txn=True)
    # While they join again they may, to save what they have done.
    for line in ("sync a a=0", "join b v=3"):
        stage.perform(line)
    assert stage.group.state_name() == "PreparingRebalance"
    may_commit(stage.group, member_id, None, 1)


def test_a_dead_group_refuses_everything() -> None:
    group = stable_group()
    group.die()
    assert group.state is DEAD
    assert refused(lambda: may_commit(group, "m", None, 3)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused(lambda: group.validate_offset_fetch(None, -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(group.validate_offset_delete) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(group.validate_delete) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_deleted_when_it_is_empty() -> None:
    ClassicGroup("g").validate_delete()
    assert refused(stable_group().validate_delete) is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_a_living_group_are_deleted_if_we_know_what_it_consumes() -> None:
    ClassicGroup("g").validate_offset_delete()
    group = stable_group()
    group.validate_offset_delete()
    group.protocol_type = "connect"
    assert refused(group.validate_offset_delete) is ErrorCode.NON_EMPTY_GROUP


def test_what_its_members_consume() -> None:
    group = stable_group(member_of("a", range=subscription("t", "u")), member_of("b", range=subscription("v")))
    assert group.subscribed_topics == {"t", "u", "v"}
    assert group.is_subscribed_to("u")
    assert not group.is_subscribed_to("w")


def test_what_they_consume_while_they_change_the_protocol() -> None:
    stage = Stage()
    for line in ("join a v=3 protocols=range,sticky", "tick 3", "sync a a=0"):
        stage.perform(line)
    assert stage.group.subscribed_topics == {"t"}
    stage.perform("join b v=3 protocols=sticky topics=u")
    assert stage.group.protocol_name == "range"
    assert stage.group.subscribed_topics == {"t", "u"}


def test_a_static_member_that_is_restarted_may_consume_something_else() -> None:
    stage = Stage()
    for line in ("join a instance=i", "tick 3", "sync a a=0"):
        stage.perform(line)
    assert stage.group.subscribed_topics == {"t"}
    for line in ("restart a", "join a topics=u"):
        stage.perform(line)
    assert stage.group.subscribed_topics == {"u"}


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version_are_read(version: int) -> None:
    metadata = version.to_bytes(2, "big") + subscription("t")[2:] + b"whatever comes after"
    assert stable_group(member_of("a", range=metadata)).subscribed_topics == {"t"}


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", subscription("t")[:-6]])
def test_a_subscription_that_can_not_be_read_may_be_to_anything(metadata: bytes) -> None:
    group = stable_group(member_of("a", range=metadata))
    assert group.subscribed_topics is None
    assert group.is_subscribed_to("t")
    assert group.offset_expiration() is None


def test_what_is_no_consumer_is_not_subscribed() -> None:
    assert not ClassicGroup("g").is_subscribed_to("t")
    group = ClassicGroup("g", 7, protocol_type="connect")
    assert group.subscribed_topics is None
    assert not group.is_subscribed_to("t")


def test_from_when_on_offsets_expire() -> None:
    simple = ClassicGroup("g", 7)
    assert simple.offset_expiration() == OffsetExpiration(since_ms=None)
    was_used = ClassicGroup("g", 7, state=EMPTY, protocol_type="consumer")
    assert was_used.offset_expiration() == OffsetExpiration(since_ms=7)
    assert not was_used.is_subscribed_to("t")
    # Records of old don't say since when.
    assert ClassicGroup("g", protocol_type="consumer").offset_expiration() == OffsetExpiration(since_ms=None)
    group = stable_group()
    assert group.offset_expiration() == OffsetExpiration(since_ms=None)
    group.protocol_type = "connect"
    assert ClassicGroup("g", 7, state=STABLE, protocol_type="connect").offset_expiration() is None


def test_nothing_expires_during_a_rebalance() -> None:
    stage = Stage()
    for line in ("join a v=3", "tick 3", "sync a a=0", "join b v=3"):
        stage.perform(line)
    assert stage.group.offset_expiration() is None


def test_a_commit_counts_as_a_heartbeat() -> None:
    stage = Stage()
    for line in ("join a v=3", "tick 3", "sync a a=0", "tick 6"):
        stage.perform(line)
    group, driver = stage.group, stage.driver
    (member_id,) = group.members
    group.extend_session(driver.shard, member_id, driver.at)
    group.extend_session(driver.shard, "nobody", driver.at)
    driver.advance(9)
    assert group.members
    driver.advance(1)
    assert not group.members


def test_a_group_that_is_built_of_members() -> None:
    """As the one that a group of the consumer protocol becomes."""
    members = [member_of("a", range=b"", sticky=b""), member_of("b", sticky=b"")]
    group = ClassicGroup("g", 7, state=STABLE, generation_id=5, protocol_type="consumer", members=members)
    assert group.leader_id == "a"
    assert group.select_protocol() == "sticky"
    assert group.supports("consumer", ["range", "sticky"])
    assert not group.supports("consumer", ["range"])
    assert not group.supports("connect", ["sticky"])
    group.remove("b")
    assert group.select_protocol() == "range"


def test_protocols_that_nobody_supports_any_more_are_forgotten() -> None:
    group = ClassicGroup("g")
    group.add(member_of("m"))
    for number in range(10):
        group.update(group.members["m"], {"range": b"", f"p{number}": b""}, 1000, 1000)
    assert set(group._supporters) == {"range", "p9"}
    group.remove("m")
    assert not group._supporters


def waits_forever(response: object) -> None:
    raise AssertionError("nothing is answered here")


def add_twice(group: ClassicGroup) -> None:
    group.members["x"] = group.members["m"]


def lose_instance(group: ClassicGroup) -> None:
    group.static_members.clear()


def lose_leader(group: ClassicGroup) -> None:
    group.leader_id = "x"


def join_once_more(group: ClassicGroup) -> None:
    group.pending_join.add("m")


def sync_without_a_member(group: ClassicGroup) -> None:
    group.pending_sync.add("x")


def change_type(group: ClassicGroup) -> None:
    group.protocol_type = "connect"


def change_protocols(group: ClassicGroup) -> None:
    group.members["m"].supported_protocols = {"sticky": b""}


def have_none_in_common(group: ClassicGroup) -> None:
    group.update(group.members["m"], {"sticky": b""}, 1000, 1000)


def name_another_protocol(group: ClassicGroup) -> None:
    group.protocol_name = "sticky"


def forget_a_join(group: ClassicGroup) -> None:
    group.members["s"].join_answer = waits_forever


def await_a_join(group: ClassicGroup) -> None:
    group.await_join(group.members["m"], waits_forever)


def await_a_sync(group: ClassicGroup) -> None:
    group.await_sync(group.members["m"], waits_forever)


def be_empty(group: ClassicGroup) -> None:
    group.state = EMPTY


def lose_all_members(group: ClassicGroup) -> None:
    for member_id in list(group.members):
        group.remove(member_id)


def sync_before_joining(group: ClassicGroup) -> None:
    group.state = PREPARING_REBALANCE
    group.pending_sync.add("m")


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (add_twice, "'x'"),
        (lose_instance, "static members {}"),
        (lose_leader, "x leads"),
        (join_once_more, "are to join"),
        (sync_without_a_member, "are to sync"),
        (change_type, "protocol type connect"),
        (change_protocols, "are counted"),
        (have_none_in_common, "in common"),
        (name_another_protocol, "not all support sticky"),
        (forget_a_join, "0 joins, not 1"),
        (await_a_join, "joins wait"),
        (await_a_sync, "syncs wait"),
        (be_empty, "has members"),
        (lose_all_members, "has no members"),
        (sync_before_joining, "awaits"),
    ],
)
def test_a_group_that_is_not_as_it_should_be(break_it: Callable[[ClassicGroup], None], what: str) -> None:
    group = stable_group()
    group.check_invariants()
    break_it(group)
    with pytest.raises(AssertionError, match=what):
        group.check_invariants()


def test_a_static_member_may_wait_for_its_new_id_in_a_stable_group() -> None:
    group = stable_group()
    group.await_join(group.members["s"], waits_forever)
    group.check_invariants()
