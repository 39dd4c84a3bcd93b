"""ConsumerGroupHeartbeat requests that make no sense, whatever the group.

Always true: a request that joins is a full one, with nothing owned; one that passes names an assignor that is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.member import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
)

if TYPE_CHECKING:
    from strandline.wire.stubs.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CONSUMER_GENERATED_MEMBER_ID_VERSION = 1
"""Since this version consumers make up their ids themselves (KIP-1082)."""


SUBSCRIBED_TOPICS_MAX = 10_000
"""Of one member, by name: with more it could not be written down."""
OWNED_PARTITIONS_MAX = 100_000


def validate(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    epoch = request.member_epoch
    if version >= CONSUMER_GENERATED_MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_GROUP_MEMBER_EPOCH:
        _not_blank(request.member_id, "MemberId")
    _not_blank(request.group_id, "GroupId")
    _not_blank(request.instance_id, "InstanceId")
    _not_blank(request.rack_id, "RackId")
    _at_most(len(request.subscribed_topic_names or ()), SUBSCRIBED_TOPICS_MAX, "subscribed topics")
    _at_most(sum(len(t.partitions) for t in request.topic_partitions or ()), OWNED_PARTITIONS_MAX, "owned partitions")
    if epoch == JOIN_GROUP_MEMBER_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _at_most(count: int, most: int, what: str) -> None:
    if count > most:
        raise _invalid(f"{count} {what} are more than {most}.")


def _not_blank(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
