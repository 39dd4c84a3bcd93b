"""FindCoordinator (10), versions 0-6: which broker looks after this group or transactional id?

v1 asks for transactional ids too; v3 is flexible; v4 asks for several keys at once; v5 knows TRANSACTION_ABORTABLE; v6 asks for
share coordinators. A key that is named twice is answered once.
A group is looked after by the leader of its partition of `__consumer_offsets`, a topic that is created when it is first asked for:
until it is there, and while the partition has no leader that can be reached, the answer is COORDINATOR_NOT_AVAILABLE.
There are no transactions yet, and a producer that wants them must not try for a minute: the answer for a transactional id is final
and says why. Up to v3 it is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the only error at which librdkafka gives up; since v4
UNSUPPORTED_VERSION, at which others do, and which the Java client tells with its message.
Left out: coordinators of transactions; of shares, which get COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

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
SHARE_SINCE, SEVERAL_KEYS_SINCE = 6, 4
CONSUMER_OFFSETS = "__consumer_offsets"

NO_TRANSACTIONS = "Transactions are not served yet; produce without transactional.id (idempotence is served)."
_SENTENCES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: "There is no coordinator of this type in this version.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NO_TRANSACTIONS,
    ErrorCode.UNSUPPORTED_VERSION: NO_TRANSACTIONS,
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
    if key_type == GROUP:
        found = _group_coordinator(key, ctx)
        if found is not None:
            node_id, endpoint = found
            return {"node_id": node_id, "host": endpoint.host, "port": endpoint.port, "error_message": None}
    error = _absence(key_type, ctx.version)
    return {"error_code": error, "error_message": _SENTENCES[error], "node_id": -1, "host": "", "port": -1}


def _absence(key_type: int, version: int) -> ErrorCode:
    """Why there is no coordinator of this type, or none now."""
    if key_type == TRANSACTION:
        several = version >= SEVERAL_KEYS_SINCE
        return ErrorCode.UNSUPPORTED_VERSION if several else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    known = key_type == GROUP or (key_type == SHARE and version >= SHARE_SINCE)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST


def _group_coordinator(group_id: str, ctx: RequestContext) -> tuple[int, Endpoint] | None:
    node, image = ctx.node, ctx.node.metadata.image()
    topic = image.topics.get(CONSUMER_OFFSETS)
    if topic is None:
        node.groups.create_topic()
        return None
    leader_id = topic.partitions[partition_of(group_id, len(topic.partitions))].leader
    leader = image.brokers.get(leader_id)
    if leader is None or leader.fenced or leader_id in node.metadata.suspects():
        return None
    endpoint = leader.endpoint(ctx.listener)
    return None if endpoint is None else (leader_id, endpoint)
