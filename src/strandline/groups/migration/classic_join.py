"""JoinGroup to a group of the consumer protocol that has members: a consumer of the classic protocol takes part in it.

It may be new, come back, or take the next step of its reconciliation: the partitions that it says it owns are what it
has not let go of. A static member takes the place of the one it was; if that was the last one that spoke the consumer
protocol, the group becomes a classic one first, and the member joins that.

Always true: a member joins only if there is a protocol that all of the classic protocol's members support, so that the
group can always become a classic one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import join_group, responses
from strandline.groups.classic.member import protocols_of, rebalance_timeout_of
from strandline.groups.classic.responses import JOIN_GROUP, UNKNOWN_MEMBER_ID
from strandline.groups.consumer import member_fencing, membership, rebalance
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.migration import downgrade, embedded_protocol, timeouts
from strandline.groups.migration.policy import MigrationPolicy, policy
from strandline.groups.migration.upgrade import classic_metadata
from strandline.ids import Uuid
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse


def join(
    shard: GroupShard,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    """KafkaError if it may not."""
    reply = join_group.for_version(answer, caller.version)
    config = shard.dependencies.config
    if policy(config) is MigrationPolicy.DISABLED:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is disabled.",
        )
    protocols = protocols_of(request.protocols)
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID
    member_id = str(Uuid.draw(shard.dependencies.randomness)) if is_unknown else request.member_id
    membership.check_size(group, member_id, request.group_instance_id, config.group_consumer_max_size)
    _check_protocols(group, member_id, request.protocol_type, protocols)
    if is_unknown and request.group_instance_id is None and caller.version >= join_group.MEMBER_ID_REQUIRED_SINCE:
        reply(responses.join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return None
    subscription = _subscription(shard, protocols)
    draft = GroupDraft(group)
    existing = group.static_member(request.group_instance_id)
    if existing is not None and downgrade.is_due_with(shard, group, existing):
        if not is_unknown:
            assert request.group_instance_id is not None
            membership.check_instance(existing, member_id, request.group_instance_id)
        member = _updated(existing, request, caller, subscription, protocols)
        changed = (member.subscribed_topic_names, member.subscribed_topic_regex) != (
            existing.subscribed_topic_names,
            existing.subscribed_topic_regex,
        )
        then = partial(join_classic, shard, request, caller, answer)
        return downgrade.downgrade_with(shard, group, member, at, rebalance=changed, done=then)
    if request.group_instance_id is None:
        old = membership.dynamic_member(group, member_id, joining=True)
    else:
        old = membership.static_member(draft, member_id, request.group_instance_id, joining=is_unknown, classic=True)
    new = _updated(old, request, caller, subscription, protocols)
    changed = rebalance.subscribe(shard, draft, old, new, at)
    rebalance.assign(shard, draft, at)
    member = rebalance.advance(shard, draft, member_id, subscription.owned, changed, at)
    member_fencing.begin_session(shard, group.group_id, member, at)
    return CoordinatorResult(draft.records, partial(_joined, shard, draft, member, reply))


def join_classic(
    shard: GroupShard,
    request: JoinGroupRequest,
    caller: Caller,
    answer: Answer[JoinGroupResponse],
    code: ErrorCode,
    at: Moment,
) -> CoordinatorResult | None:
    """The group is no longer one of the consumer protocol: the member joins what it is now."""
    if code is not ErrorCode.NONE:
        failed = responses.join_error(coordinator_error(code), request.member_id)
        join_group.for_version(answer, caller.version)(failed)
        return None
    return shard.join_group(request, caller, at, answer)


def _joined(
    shard: GroupShard,
    draft: GroupDraft,
    member: ConsumerGroupMember,
    answer: Answer[JoinGroupResponse],
    code: ErrorCode,
    at: Moment,
) -> None:
    if code is not ErrorCode.NONE:
        draft.refused()
        answer(responses.join_error(coordinator_error(code), member.member_id))
        return
    group_id = draft.group.group_id
    member_fencing.begin_session(shard, group_id, member, at)
    timeouts.expect_sync(shard, group_id, member, at)
    metadata = member.classic_member_metadata
    assert metadata is not None
    answer(
        messages.response(JOIN_GROUP)(
            generation_id=member.member_epoch,
            protocol_type=embedded_protocol.PROTOCOL_TYPE,
            protocol_name=metadata.supported_protocols[0].name,
            leader="",
            member_id=member.member_id,
            members=[],
        )
    )


def _check_protocols(group: ConsumerGroup, member_id: str, protocol_type: str, protocols: dict[str, bytes]) -> None:
    others = group.classic_members_count
    if protocol_type != embedded_protocol.PROTOCOL_TYPE or not any(
        group.classic_protocols.get(name, 0) == others for name in protocols
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def _subscription(shard: GroupShard, protocols: dict[str, bytes]) -> embedded_protocol.EmbeddedSubscription:
    try:
        return embedded_protocol.subscription_in(protocols, shard.dependencies.image)
    except MalformedRequest as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from error


def _updated(
    member: ConsumerGroupMember,
    request: JoinGroupRequest,
    caller: Caller,
    subscription: embedded_protocol.EmbeddedSubscription,
    protocols: dict[str, bytes],
) -> ConsumerGroupMember:
    """With what the request brings. A consumer of the classic protocol resolves patterns by itself."""
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic_member_metadata=classic_metadata(protocols.items(), request.session_timeout_ms),
    )
