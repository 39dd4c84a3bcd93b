"""SaslAuthenticate (36), versions 0-2: one step of a SASL exchange.

v1 tells how long the session lasts; v2 is flexible.
A connection to a PLAINTEXT or SSL listener is past its authentication: ILLEGAL_SASL_STATE, as by Kafka.
Left out: SASL listeners.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 36, range(3)
LISTENERS = ("broker", "controller")


def handle(request: Any, ctx: RequestContext) -> Any:
    return messages.response(KEY)(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
