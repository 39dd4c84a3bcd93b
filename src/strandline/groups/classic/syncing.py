"""SyncGroup to a classic group: the leader says who gets what, the others ask.

Always true: nobody is told an assignment that isn't committed, nor of a generation that is over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic import answers, rebalancing
from strandline.groups.classic.group import COMPLETING_REBALANCE, PREPARING_REBALANCE, ClassicGroup
from strandline.groups.classic.member import ClassicMember
from strandline.groups.classic.recording import group_record
from strandline.groups.outcome import Answer, Caller, Moment, Outcome

if TYPE_CHECKING:
    from strandline.groups.shard import Shard

PROTOCOL_REQUIRED_SINCE = 5


def sync(shard: Shard, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
    try:
        check(request, caller)
        group, member = _validated(shard, request)
    except KafkaError as error:
        answer(answers.sync_error(error.code))
        return None
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        shard.timers.cancel(rebalancing.sync_key(group.group_id))
    if group.state is not COMPLETING_REBALANCE:
        # A new coordinator may have read it back before it was committed.
        return Outcome([], partial(_committed, answer, answers.synced(group, member)))
    group.await_sync(member, answer)
    if member.member_id != group.leader_id:
        return None
    assignments = {given.member_id: bytes(given.assignment) for given in request.assignments}
    done = partial(_written, shard, group, group.generation_id, assignments)
    return Outcome([group_record(group, assignments)], done, replayed=False)


def check(request: Any, caller: Caller) -> None:
    """KafkaError if nobody may sync like this, whatever the group is."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if caller.version >= PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _validated(shard: Shard, request: Any) -> tuple[ClassicGroup, ClassicMember]:
    group = shard.classic_group(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return group, member


def _committed(answer: Answer, response: Any, code: ErrorCode, at: Moment) -> None:
    answer(response if code is ErrorCode.NONE else answers.sync_error(answers.after_failed_write(code)))


def _written(
    shard: Shard, group: ClassicGroup, generation_id: int, assignments: dict[str, bytes], code: ErrorCode, at: Moment
) -> Outcome | None:
    if not rebalancing.is_current(shard, group) or group.generation_id != generation_id:
        return None
    if group.state is not COMPLETING_REBALANCE:
        return None  # a rebalance began meanwhile, and everyone was told
    if code is ErrorCode.NONE:
        rebalancing.assign(shard, group, assignments, at)
        return None
    rebalancing.reset_assignments(shard, group, answers.after_failed_write(code), at)
    return rebalancing.prepare_rebalance(shard, group, at)
