"""CreateAcls (30), versions 1-3: new access control entries.

v2 is flexible; v3 knows the resource type of users.
There is no authorizer, so each is answered with SECURITY_DISABLED, as by Kafka without one.
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
    from strandline.wire.stubs.create_acls import CreateAclsRequest, CreateAclsResponse

KEY: Final = 30
VERSIONS = range(1, 4)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: CreateAclsRequest, ctx: RequestContext) -> MaybePending[CreateAclsResponse]:
    return answer(_refuse(request), request, ctx)


def _refuse(request: CreateAclsRequest) -> Work[CreateAclsResponse]:
    response, results = messages.response(KEY), []
    for _ in request.creations:
        results.append(
            response.AclCreationResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
            )
        )
        yield 0
    return response(results=results)
