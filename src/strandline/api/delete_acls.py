"""DeleteAcls (31), versions 1-3: remove the access control entries that match filters.

v2 is flexible; v3 knows the resource type of users.
There is no authorizer, so each filter is answered with SECURITY_DISABLED, as by Kafka without one.
Left out: the authorizer.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.sliced_work import Work
from strandline.wire import messages

KEY, VERSIONS = 31, range(1, 4)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: Any, ctx: RequestContext) -> Any:
    return answer(_refuse(request), request, ctx)


def _refuse(request: Any) -> Work[Any]:
    response, results = messages.response(KEY), []
    for _ in request.filters:
        results.append(
            response.DeleteAclsFilterResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
            )
        )
        yield 0
    return response(filter_results=results)
