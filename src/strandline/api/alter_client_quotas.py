"""AlterClientQuotas (49), versions 0-1: set or remove quotas of users, client ids and IP addresses.

v1 is flexible. Quotas are not enforced here, so one that is set would be a promise that is not kept: it is refused as
UNSUPPORTED_VERSION with the reason. Removing one that is not there changes nothing and succeeds, as in Kafka; an unknown entity
type is INVALID_REQUEST.
Left out: setting, and removing those that a cluster of Apache Kafka brought along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.describe_client_quotas import ENTITY_TYPES, Entity, entity_of, quotas
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

KEY: Final = 49
VERSIONS = range(2)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: AlterClientQuotasRequest, ctx: RequestContext) -> MaybePending[AlterClientQuotasResponse]:
    return answer(_refuse(request, ctx), request, ctx)


def _refuse(request: AlterClientQuotasRequest, ctx: RequestContext) -> Work[AlterClientQuotasResponse]:
    kept, response = quotas(ctx.node.metadata.image()), messages.response(KEY)
    entries = []
    for entry in request.entries:
        code, message = yield from _outcome(entry, kept)
        entities = []
        for each in entry.entity:
            entities.append(response.EntityData(entity_type=each.entity_type, entity_name=each.entity_name))
            yield 0
        entries.append(response.EntryData(error_code=code, error_message=message, entity=entities))
        yield 0
    return response(entries=entries)


def _outcome(
    entry: AlterClientQuotasRequest.EntryData, kept: Mapping[Entity, Mapping[str, float]]
) -> Work[tuple[ErrorCode, str | None]]:
    for each in entry.entity:
        yield 0
        if each.entity_type not in ENTITY_TYPES:
            return ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {each.entity_type[:80]}"
    if not entry.entity:
        return ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity"
    set_here = kept.get(entity_of(entry.entity), {})
    for op in entry.ops:
        yield 0
        if not op.remove or op.key in set_here:
            reason = f"{op.key[:80]} can't be changed: client quotas are not enforced yet."
            return ErrorCode.UNSUPPORTED_VERSION, reason
    return ErrorCode.NONE, None
