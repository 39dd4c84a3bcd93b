"""DeleteGroups (42), versions 0-2: remove groups that have no members, with their offsets.

v1 has the throttle time; v2 is flexible.
A group that can't be removed is answered with the reason and does not stop the others of its request.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import Several
from strandline.api.requests.pending_reply import MaybePending
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

    _Deletions = Several[DeleteGroupsResponse.DeletableGroupResult, DeleteGroupsResponse]

KEY: Final = 42
VERSIONS = range(3)


def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> MaybePending[DeleteGroupsResponse]:
    group_ids = list(dict.fromkeys(request.groups_names))
    several: _Deletions = Several(len(group_ids), lambda results: messages.response(KEY)(results=results))
    return several.begin(lambda place: _delete(ctx, group_ids[place], place, several), request, ctx)


def _delete(ctx: RequestContext, group_id: str, place: int, several: _Deletions) -> None:
    def settle(code: ErrorCode) -> None:
        several.put(
            place, messages.response(KEY).DeletableGroupResult(group_id=group_id, error_code=coordinator_error(code))
        )

    def delete(shard: GroupShard, at: Moment) -> CoordinatorResult:
        return CoordinatorResult(shard.delete_group(group_id, at), done)

    def done(code: ErrorCode, at: Moment) -> None:
        settle(code)

    def refuse(error: KafkaError) -> None:
        settle(error.code)

    ctx.node.groups.write(group_id, delete, refuse)
