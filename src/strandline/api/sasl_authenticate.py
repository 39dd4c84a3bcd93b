"""SaslAuthenticate (36), versions 0-2: one step of a SASL exchange.

v1 tells how long the session lasts; v2 is flexible.
A connection to a PLAINTEXT or SSL listener is past its authentication: ILLEGAL_SASL_STATE, as by Kafka.
Left out: SASL listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

KEY: Final = 36
VERSIONS = range(3)
LISTENERS = ("broker", "controller")


def handle(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse:
    return messages.response(KEY)(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
