"""AlterUserScramCredentials (51), version 0: set or delete SCRAM credentials of users.

Nobody can authenticate by SCRAM here, so a credential would be a promise that is not kept: setting one is refused as
UNSUPPORTED_VERSION, which is how Kafka refuses it where the cluster can't keep it, with the reason. Deleting one that is not there
is RESOURCE_NOT_FOUND; a user that is named twice is DUPLICATE_RESOURCE, an empty name UNACCEPTABLE_CREDENTIAL.
Left out: setting, and deleting those that a cluster of Apache Kafka brought along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.describe_user_scram_credentials import credentials
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.metadata.records import UserScramCredentialRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )

    _Change = (
        AlterUserScramCredentialsRequest.ScramCredentialDeletion
        | AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    )

KEY: Final = 51
VERSIONS = range(1)
LISTENERS, FORWARDED = ("broker", "controller"), True

NOT_SERVED = (
    "SCRAM credentials can't be changed: SASL listeners are not served yet; use SSL with ssl.client.auth=required."
)


def handle(
    request: AlterUserScramCredentialsRequest, ctx: RequestContext
) -> MaybePending[AlterUserScramCredentialsResponse]:
    return answer(_refuse(request, ctx), request, ctx)


def _refuse(request: AlterUserScramCredentialsRequest, ctx: RequestContext) -> Work[AlterUserScramCredentialsResponse]:
    kept = credentials(ctx.node.metadata.image())
    changes = [(change, False) for change in request.deletions] + [(change, True) for change in request.upsertions]
    counts = Counter(change.name for change, _ in changes)
    response, results = messages.response(KEY), {}
    for change, sets in changes:
        code, message = _refusal(change, sets, counts[change.name], kept)
        results[change.name] = response.AlterUserScramCredentialsResult(
            user=change.name, error_code=code, error_message=message
        )
        yield 0
    return response(results=list(results.values()))


def _refusal(
    change: _Change, sets: bool, count: int, kept: Mapping[str, list[UserScramCredentialRecord]]
) -> tuple[ErrorCode, str]:
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if count > 1:
        return ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    if sets or any(record.mechanism == change.mechanism for record in kept.get(change.name, ())):
        return ErrorCode.UNSUPPORTED_VERSION, NOT_SERVED
    return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
