"""Whether a member of a group of the consumer protocol may commit or fetch offsets.

Always true: who is not a member, or is in another epoch than it says, is refused; but a commit of an earlier epoch is
taken if the member has been responsible for the partition since then, so that a commit may cross an epoch that it
doesn't touch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.group import CommitPartitionValidator
from strandline.ids import Uuid

if TYPE_CHECKING:
    from strandline.groups.consumer.group import ConsumerGroup

EPOCH_AWARE_VERSION = 9
"""The first OffsetCommit that speaks of member epochs."""


def validate_commit(
    group: ConsumerGroup,
    member_id: str,
    group_instance_id: str | None,
    member_epoch: int,
    *,
    is_transactional: bool,
    version: int,
) -> CommitPartitionValidator | None:
    if member_epoch < 0 and not group.members:
        # The admin client, or a consumer that takes no part in the group.
        return None
    if is_transactional and member_epoch == -1 and not member_id and group_instance_id is None:
        # A producer that does not know its group's metadata.
        return None
    member = group.member(member_id)
    if not is_transactional and not member.uses_classic_protocol and version < EPOCH_AWARE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if member_epoch == member.member_epoch:
        return None
    if member_epoch > member.member_epoch:
        raise _stale(member, f"Received epoch {member_epoch} is newer than current member epoch {member.member_epoch}.")

    def validate(topic: str, topic_id: Uuid, partition: int) -> None:
        since = member.assignment_epoch(topic_id, partition)
        if since is None:
            raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if member_epoch < since:
            raise _stale(
                member,
                f"Received epoch {member_epoch} is older than assignment epoch {since} for partition {topic}-{partition}.",
            )

    return validate


def validate_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    if member_id is None and member_epoch < 0:
        return
    member = group.member(member_id or "")
    if member_epoch != member.member_epoch:
        raise _stale(
            member, f"The received epoch {member_epoch} does not match the expected member epoch {member.member_epoch}."
        )


def _stale(member: ConsumerGroupMember, message: str) -> KafkaError:
    return KafkaError(
        ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH, message
    )
