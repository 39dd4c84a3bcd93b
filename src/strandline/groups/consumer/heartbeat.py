"""ConsumerGroupHeartbeat (68), versions 0-1: how a member joins, stays, reports its partitions, and receives its
assignment.

A member joins with epoch 0 and all its fields, repeats them all when it is not sure that the last request arrived, and
says nothing but its epoch otherwise: that keep-alive is most of what a coordinator does, and changes nothing but the
session.

Always true: a response with a new epoch or assignment is sent when the records with them are committed; the assignment
is in the answer to a full request, and whenever it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer import (
    heartbeat_validation,
    leave,
    member_fencing,
    membership,
    rebalance,
    subscription_patterns,
)
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.member import (
    JOIN_GROUP_MEMBER_EPOCH,
    ConsumerGroupMember,
    ConsumerGroupMemberState,
    OwnedPartitions,
    PartitionEpochs,
)
from strandline.groups.migration import upgrade
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )

CONSUMER_GROUP_HEARTBEAT: Final = 68


def heartbeat(
    shard: GroupShard,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[ConsumerGroupHeartbeatResponse],
) -> CoordinatorResult | None:
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        known = group.members.get(request.member_id)
        if known is not None and _is_keep_alive(shard, group, known, request, caller, at):
            member_fencing.extend_session(shard, group, known, at)
            # A member that names its epoch received it when it was committed: there is nothing to wait for.
            answer(
                messages.response(CONSUMER_GROUP_HEARTBEAT)(
                    member_id=known.member_id,
                    member_epoch=known.member_epoch,
                    heartbeat_interval_ms=shard.dependencies.group_config(group.group_id).heartbeat_interval_ms,
                )
            )
            return None
    config = shard.dependencies.config
    heartbeat_validation.validate(request, caller.version, config.group_consumer_assignors)
    if request.member_epoch < 0:
        return leave.leave(shard, request, at, answer)
    draft = _draft(shard, request, at)
    membership.check_size(draft.group, request.member_id, request.instance_id, config.group_consumer_max_size)
    owned = _owned(request.topic_partitions)
    old = _member(shard, draft, request, owned)
    changed = rebalance.subscribe(shard, draft, old, _updated(old, request, caller), at)
    rebalance.assign(shard, draft, at)
    member = rebalance.advance(shard, draft, old.member_id, owned, changed, at)
    member_fencing.begin_session(shard, draft.group.group_id, member, at)
    return _result(draft, _response(shard, request, old, member), answer)


def metadata_changed(shard: GroupShard, image: MetadataImage, at: Moment) -> None:
    """Topics may have come, gone or grown: every group looks at its own with its next heartbeat."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            group.metadata_refresh_requested = True
            group.regex_refresh_requested = True


def _is_keep_alive(
    shard: GroupShard,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    at: Moment,
) -> bool:
    """Whether the request changes nothing, and the response has nothing new."""
    return (
        request.member_epoch == member.member_epoch == group.assignment_epoch == group.group_epoch
        and member.state is ConsumerGroupMemberState.STABLE
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
        and request.rebalance_timeout_ms == -1
        and (request.instance_id is None or request.instance_id == member.instance_id)
        and not group.metadata_refresh_requested
        and member.client_id == caller.client_id
        and member.client_host == caller.client_host
        and member.classic_member_metadata is None
        and not (
            group.subscribed_regular_expressions
            and subscription_patterns.is_refresh_due(
                group, shard.dependencies.config.group_consumer_regex_refresh_interval_ms, at.now
            )
        )
    )


def _draft(shard: GroupShard, request: ConsumerGroupHeartbeatRequest, at: Moment) -> GroupDraft:
    """The group, or one to be, if the member is joining:
    there is none of this id, or a classic one that may become one.
    """
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return GroupDraft(group)
    if request.member_epoch != JOIN_GROUP_MEMBER_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
    draft = GroupDraft(ConsumerGroup(request.group_id))
    if isinstance(group, ClassicGroup):
        draft.add(*(group.tombstones() if group.is_empty() else upgrade.upgrade(shard, group, at)))
    return draft


def _member(
    shard: GroupShard, draft: GroupDraft, request: ConsumerGroupHeartbeatRequest, owned: OwnedPartitions | None
) -> ConsumerGroupMember:
    joining = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
    member_id = request.member_id or str(Uuid.draw(shard.dependencies.randomness))
    if request.instance_id is None:
        member = membership.dynamic_member(draft.group, member_id, joining=joining)
    else:
        member = membership.static_member(draft, member_id, request.instance_id, joining=joining)
    membership.check_epoch(member, request.member_epoch, owned)
    return member


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerGroupMember:
    """With what the request brings; null or -1 leave a field as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        server_assignor_name=member.server_assignor_name
        if request.server_assignor is None
        else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic_member_metadata=None,
    )


def _response(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, old: ConsumerGroupMember, member: ConsumerGroupMember
) -> ConsumerGroupHeartbeatResponse:
    Response = messages.response(CONSUMER_GROUP_HEARTBEAT)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    has_assignment = (
        request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        or is_full
        or old.assigned_partitions != member.assigned_partitions
    )
    return Response(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=shard.dependencies.group_config(request.group_id).heartbeat_interval_ms,
        assignment=_assignment(Response, member.assigned_partitions) if has_assignment else None,
    )


def _assignment(
    Response: type[ConsumerGroupHeartbeatResponse], partitions: PartitionEpochs
) -> ConsumerGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
            for topic_id, epochs in sorted(partitions.items())
        ]
    )


def _result(
    draft: GroupDraft, response: ConsumerGroupHeartbeatResponse, answer: Answer[ConsumerGroupHeartbeatResponse]
) -> CoordinatorResult:
    """Without records it has to wait nevertheless: what is in the response may not be committed yet."""

    def done(code: ErrorCode, at: Moment) -> None:
        if code:
            draft.refused()
            answer(type(response)(error_code=coordinator_error(code)))
        else:
            answer(response)

    return CoordinatorResult(draft.records, done)


def _owned(topic_partitions: Iterable[ConsumerGroupHeartbeatRequest.TopicPartitions] | None) -> OwnedPartitions | None:
    if topic_partitions is None:
        return None
    return {Uuid(topic.topic_id): frozenset(topic.partitions) for topic in topic_partitions}
