"""Who may commit and fetch offsets in a group of the consumer protocol (rule C12)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.group import CommitPartitionValidator
from strandline.groups.records import ClassicMemberMetadata
from strandline.ids import Uuid

T = Uuid(b"t" * 16)
CLASSIC = ClassicMemberMetadata(session_timeout_ms=1000, supported_protocols=())


@pytest.fixture
def group() -> ConsumerGroup:
    group = ConsumerGroup("g")
    assigned, revoking = {T: {0: 3, 1: 5}}, {T: {2: 4}}
    group.put_member(ConsumerGroupMember("a", 5, assigned_partitions=assigned, partitions_pending_revocation=revoking))
    group.put_member(ConsumerGroupMember("c", 5, classic_member_metadata=CLASSIC))
    return group


def commit(group: ConsumerGroup, member_id: str, epoch: int, version: int = 9) -> CommitPartitionValidator | None:
    return group.validate_offset_commit(member_id, None, epoch, is_transactional=False, version=version)


def refusal(group: ConsumerGroup, member_id: str, epoch: int, version: int = 9) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        commit(group, member_id, epoch, version)
    return raised.value.code


def test_a_member_commits_in_its_epoch(group: ConsumerGroup) -> None:
    assert commit(group, "a", 5) is None
    assert commit(group, "c", 5, version=8) is None
    assert refusal(group, "a", 6) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(group, "c", 6) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(group, "b", 5) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(group, "a", 5, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_a_commit_of_an_earlier_epoch_is_for_what_the_member_has_had_since(group: ConsumerGroup) -> None:
    validate = commit(group, "a", 4)
    assert validate is not None
    validate("t", T, 0)
    validate("t", T, 2)
    for partition in (1, 7):
        with pytest.raises(KafkaError) as raised:
            validate("t", T, partition)
        assert raised.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_without_members_anybody_may_commit(group: ConsumerGroup) -> None:
    assert refusal(group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(ConsumerGroup("empty"), "", -1) is None
    assert refusal(ConsumerGroup("empty"), "a", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.validate_offset_commit("", None, -1, is_transactional=True, version=5) is None


def test_a_fetch_names_no_member_or_the_epoch_of_one(group: ConsumerGroup) -> None:
    group.validate_offset_fetch(None, -1)
    group.validate_offset_fetch("a", 5)
    for member_id, epoch, code in (
        ("a", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("c", 4, ErrorCode.ILLEGAL_GENERATION),
        ("b", 5, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as raised:
            group.validate_offset_fetch(member_id, epoch)
        assert raised.value.code is code


def test_a_group_with_members_may_not_be_deleted(group: ConsumerGroup) -> None:
    with pytest.raises(KafkaError) as raised:
        group.validate_delete()
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP
    ConsumerGroup("empty").validate_delete()
