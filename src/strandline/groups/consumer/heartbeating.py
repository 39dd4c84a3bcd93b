"""ConsumerGroupHeartbeat (68), versions 0-1: how a member joins, stays, tells what it has, and learns what it is to have.

A member joins with epoch 0 and all its fields, repeats them all when it is not sure that the last request arrived, and says
nothing but its epoch otherwise: that keep-alive is most of what a coordinator does, and changes nothing but the session.

Always true: an answer that tells of a new epoch or assignment is given when the records that say so are committed; the
assignment is in the answer to a full request, and whenever it changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer import fencing, leaving, membership, patterns, updating, validating
from strandline.groups.consumer.drafting import Draft
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import JOIN_GROUP_MEMBER_EPOCH, Member, MemberState, Owned, Partitions
from strandline.groups.migration import upgrading
from strandline.groups.outcome import Answer, Caller, Moment, Outcome, told
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import Shard

CONSUMER_GROUP_HEARTBEAT = 68


def heartbeat(shard: Shard, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        known = group.members.get(request.member_id)
        if known is not None and _is_keep_alive(shard, group, known, request, caller, at):
            fencing.extend_session(shard, group, known, at)
            # Whoever names its epoch was told of it when it was committed: there is nothing to wait for.
            answer(
                messages.response(CONSUMER_GROUP_HEARTBEAT)(
                    member_id=known.member_id,
                    member_epoch=known.member_epoch,
                    heartbeat_interval_ms=shard.surroundings.group_config(group.group_id).heartbeat_interval_ms,
                )
            )
            return None
    config = shard.surroundings.config
    validating.validate(request, caller.version, config.group_consumer_assignors)
    if request.member_epoch < 0:
        return leaving.leave(shard, request, at, answer)
    draft = _draft(shard, request, at)
    membership.check_size(draft.group, request.member_id, request.instance_id, config.group_consumer_max_size)
    owned = _owned(request.topic_partitions)
    old = _member(shard, draft, request, owned)
    changed = updating.subscribe(shard, draft, old, _updated(old, request, caller), at)
    updating.assign(shard, draft, at)
    member = updating.advance(shard, draft, old.member_id, owned, changed, at)
    fencing.begin_session(shard, draft.group.group_id, member, at)
    return _outcome(draft, _response(shard, request, old, member), answer)


def metadata_changed(shard: Shard, image: MetadataImage, at: Moment) -> None:
    """Topics may have come, gone or grown: every group looks at its own with its next heartbeat."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            group.metadata_refresh_requested = True
            group.regex_refresh_requested = True


def _is_keep_alive(
    shard: Shard, group: ConsumerGroup, member: Member, request: Any, caller: Caller, at: Moment
) -> bool:
    """Whether it says nothing new, and there is nothing new to tell."""
    return (
        request.member_epoch == member.member_epoch == group.assignment_epoch == group.group_epoch
        and member.state is MemberState.STABLE
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
            and patterns.is_refresh_due(
                group, shard.surroundings.config.group_consumer_regex_refresh_interval_ms, at.now
            )
        )
    )


def _draft(shard: Shard, request: Any, at: Moment) -> Draft:
    """The group, or one to be, if the member is joining: there is none of this id, or a classic one that may become one."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return Draft(group)
    if request.member_epoch != JOIN_GROUP_MEMBER_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
    draft = Draft(ConsumerGroup(request.group_id))
    if isinstance(group, ClassicGroup):
        draft.add(*(group.tombstones() if group.is_empty() else upgrading.upgrade(shard, group, at)))
    return draft


def _member(shard: Shard, draft: Draft, request: Any, owned: Owned | None) -> Member:
    joining = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
    member_id = request.member_id or str(Uuid.draw(shard.surroundings.randomness))
    if request.instance_id is None:
        member = membership.dynamic_member(draft.group, member_id, joining=joining)
    else:
        member = membership.static_member(draft, member_id, request.instance_id, joining=joining)
    membership.check_epoch(member, request.member_epoch, owned)
    return member


def _updated(member: Member, request: Any, caller: Caller) -> Member:
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


def _response(shard: Shard, request: Any, old: Member, member: Member) -> Any:
    Response = messages.response(CONSUMER_GROUP_HEARTBEAT)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    tell = (
        request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        or is_full
        or old.assigned_partitions != member.assigned_partitions
    )
    return Response(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=shard.surroundings.group_config(request.group_id).heartbeat_interval_ms,
        assignment=_assignment(Response, member.assigned_partitions) if tell else None,
    )


def _assignment(Response: Any, partitions: Partitions) -> Any:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
            for topic_id, epochs in sorted(partitions.items())
        ]
    )


def _outcome(draft: Draft, response: Any, answer: Answer) -> Outcome:
    """Without records it has to wait nevertheless: what it tells may be on its way into the log."""

    def done(code: ErrorCode, at: Moment) -> None:
        if code:
            draft.refused()
            answer(type(response)(error_code=told(code)))
        else:
            answer(response)

    return Outcome(draft.records, done)


def _owned(topic_partitions: Any) -> Owned | None:
    if topic_partitions is None:
        return None
    return {Uuid(topic.topic_id): frozenset(topic.partitions) for topic in topic_partitions}
