"""DescribeAcls (29), versions 1-3: which access control entries match a filter?

v2 is flexible; v3 knows the resource type of users.
There is no authorizer, so the answer is SECURITY_DISABLED, as Kafka's is without one: tools take that for "no entries".
Left out: the authorizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_acls import DescribeAclsRequest, DescribeAclsResponse

KEY: Final = 29
VERSIONS = range(1, 4)
LISTENERS = ("broker", "controller")


def handle(request: DescribeAclsRequest, ctx: RequestContext) -> DescribeAclsResponse:
    return messages.response(KEY)(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
