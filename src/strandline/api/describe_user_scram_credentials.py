"""DescribeUserScramCredentials (50), version 0: which SCRAM mechanisms users have credentials for.

No users, or null, is all of them. A named user without credentials is RESOURCE_NOT_FOUND, one that is named twice
DUPLICATE_RESOURCE. Nobody can authenticate by SCRAM here and none can be set (see AlterUserScramCredentials), so there are only
those that a cluster of Apache Kafka brought along, which are kept.
Left out: nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import UserScramCredentialRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )

KEY: Final = 50
VERSIONS = range(1)
LISTENERS = ("broker", "controller")


def handle(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext
) -> MaybePending[DescribeUserScramCredentialsResponse]:
    return answer(_describe(request, ctx), request, ctx)


def _describe(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext
) -> Work[DescribeUserScramCredentialsResponse]:
    kept = credentials(ctx.node.metadata.image())
    counts = Counter(user.name for user in request.users or ())
    response, results = messages.response(KEY), []
    for user in counts or sorted(kept):
        results.append(_result(user, counts[user], kept.get(user)))
        yield 0
    return response(results=results)


def credentials(image: MetadataImage) -> dict[str, list[UserScramCredentialRecord]]:
    """What the metadata keeps, by the user's name."""
    kept: dict[str, list[UserScramCredentialRecord]] = {}
    for record in image.others.values():
        if isinstance(record, UserScramCredentialRecord):
            kept.setdefault(record.name, []).append(record)
    return kept


def _result(
    user: str, count: int, kept: list[UserScramCredentialRecord] | None
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    response = messages.response(KEY)
    result = response.DescribeUserScramCredentialsResult(user=user)
    if count > 1:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    elif kept is None:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {user}"
    else:
        result.credential_infos = [
            response.CredentialInfo(mechanism=record.mechanism, iterations=record.iterations) for record in kept
        ]
    return result
