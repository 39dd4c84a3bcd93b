"""ListGroups (16), versions 0-5: the groups that this broker coordinates.

v1 has the throttle time; v3 is flexible; v4 tells their states and lists those that are asked for; v5 does so with their types,
classic and consumer.
While a partition of `__consumer_offsets` is still being read back, the answer is COORDINATOR_LOAD_IN_PROGRESS.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import caller
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.coordinator.result import coordinator_error
from strandline.errors import KafkaError
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_groups import ListGroupsRequest, ListGroupsResponse

KEY: Final = 16
VERSIONS = range(6)


def handle(request: ListGroupsRequest, ctx: RequestContext) -> MaybePending[ListGroupsResponse]:
    later: PendingReply[ListGroupsResponse] = PendingReply(may_be_overtaken=False)
    asking = caller(ctx)
    states, types = frozenset(request.states_filter), frozenset(request.types_filter)

    def answer(groups: list[ListGroupsResponse.ListedGroup]) -> None:
        if not later.done:
            later.complete(messages.response(KEY)(groups=groups))

    def refuse(error: KafkaError) -> None:
        if not later.done:
            later.complete(messages.response(KEY)(error_code=coordinator_error(error.code)))

    ctx.node.groups.read_all(lambda shard, at: shard.list_groups(states, types, asking), answer, refuse)
    return later
