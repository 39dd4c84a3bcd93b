"""DeleteGroups (42), versions 0-2: remove groups that have no members, with their offsets.

v1 has the throttle time; v2 is flexible.
A group that can't be removed is answered with the reason and does not stop the others of its request.
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import Several
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.outcome import Moment, Outcome, told
from strandline.groups.shard import Shard
from strandline.wire import messages

KEY, VERSIONS = 42, range(3)


def handle(request: Any, ctx: RequestContext) -> Any:
    group_ids = list(dict.fromkeys(request.groups_names))
    several = Several(len(group_ids), lambda results: messages.response(KEY)(results=results))
    return several.begin(lambda place: _delete(ctx, group_ids[place], place, several), request, ctx)


def _delete(ctx: RequestContext, group_id: str, place: int, several: Several) -> None:
    def settle(code: ErrorCode) -> None:
        several.put(place, messages.response(KEY).DeletableGroupResult(group_id=group_id, error_code=told(code)))

    def delete(shard: Shard, at: Moment) -> Outcome:
        return Outcome(shard.delete_group(group_id, at), done)

    def done(code: ErrorCode, at: Moment) -> None:
        settle(code)

    def refuse(error: KafkaError) -> None:
        settle(error.code)

    ctx.node.groups.write(group_id, delete, refuse)
