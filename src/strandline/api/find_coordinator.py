"""FindCoordinator (10), versions 0-6: which broker looks after this group or transactional id?

v1 asks for transactional ids too; v3 is flexible; v4 asks for several keys at once; v5 knows TRANSACTION_ABORTABLE; v6 asks for
share coordinators. A key that is named twice is answered once.
A group is looked after by the leader of its partition of `__consumer_offsets`, a topic that is created when it is first asked for:
until it is there, and while the partition has no leader that can be reached, the answer is COORDINATOR_NOT_AVAILABLE.
The same goes for a transactional id and `__transaction_state`.
Left out: coordinators of shares, which get COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypedDict

from strandline.api.context import RequestContext
from strandline.api.groups.placement import partition_of
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.metadata.image import Endpoint
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

KEY: Final = 10
VERSIONS = range(7)

GROUP, TRANSACTION, SHARE = 0, 1, 2
TYPES_SINCE, SEVERAL_KEYS_SINCE, SHARE_SINCE = 1, 4, 6
CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"

_SENTENCES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: "There is no coordinator of this type in this version.",
}


class _Found(TypedDict, total=False):
    """The fields that the response has for one key, at its top or in an item."""

    error_code: ErrorCode
    error_message: str | None
    node_id: int
    host: str
    port: int


def handle(request: FindCoordinatorRequest, ctx: RequestContext) -> MaybePending[FindCoordinatorResponse]:
    response = messages.response(KEY)
    if ctx.version < SEVERAL_KEYS_SINCE:
        return response(**_found(request.key_type, request.key, ctx))
    return answer(_find_all(request, ctx), request, ctx)


def _find_all(request: FindCoordinatorRequest, ctx: RequestContext) -> Work[FindCoordinatorResponse]:
    reply = messages.response(KEY)()
    for key in dict.fromkeys(request.coordinator_keys):
        found = _found(request.key_type, key, ctx)
        reply.coordinators.append(messages.response(KEY).Coordinator(key=key, **found))
        yield 0
    return reply


def _found(key_type: int, key: str, ctx: RequestContext) -> _Found:
    """The broker, or why there is none, as the response's fields."""
    found = None
    if key_type == GROUP:
        found = _coordinator(CONSUMER_OFFSETS, key, ctx, ctx.node.groups.create_topic)
    elif key_type == TRANSACTION and ctx.version >= TYPES_SINCE:
        found = _coordinator(TRANSACTION_STATE, key, ctx, ctx.node.transactions.create_topic)
    if found is not None:
        node_id, endpoint = found
        return {"node_id": node_id, "host": endpoint.host, "port": endpoint.port, "error_message": None}
    error = _absence(key_type, ctx.version)
    return {"error_code": error, "error_message": _SENTENCES[error], "node_id": -1, "host": "", "port": -1}


def _absence(key_type: int, version: int) -> ErrorCode:
    """Why there is no coordinator of this type, or none now."""
    known = key_type in (GROUP, TRANSACTION) or (key_type == SHARE and version >= SHARE_SINCE)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST


def _coordinator(
    topic_name: str, key: str, ctx: RequestContext, create_topic: Callable[[], None]
) -> tuple[int, Endpoint] | None:
    """The leader of the partition that the key belongs to, if it can be reached (TXN-T36)."""
    node, image = ctx.node, ctx.node.metadata.image()
    topic = image.topics.get(topic_name)
    if topic is None:
        create_topic()
        return None
    leader_id = topic.partitions[partition_of(key, len(topic.partitions))].leader
    leader = image.brokers.get(leader_id)
    if leader is None or leader.fenced or leader_id in node.metadata.suspects():
        return None
    endpoint = leader.endpoint(ctx.listener)
    return None if endpoint is None else (leader_id, endpoint)
