"""DeleteAcls (31), versions 1-3: remove the access control entries that match filters.

v2 is flexible; v3 knows the resource type of users.
There is no authorizer, so each filter is answered with SECURITY_DISABLED, as by Kafka without one.
Left out: the authorizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.delete_acls import DeleteAclsRequest, DeleteAclsResponse

KEY: Final = 31
VERSIONS = range(1, 4)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: DeleteAclsRequest, ctx: RequestContext) -> MaybePending[DeleteAclsResponse]:
    return answer(_refuse(request), request, ctx)


def _refuse(request: DeleteAclsRequest) -> Work[DeleteAclsResponse]:
    response, results = messages.response(KEY), []
    for _ in request.filters:
        results.append(
            response.DeleteAclsFilterResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
            )
        )
        yield 0
    return response(filter_results=results)
