"""SaslHandshake (17), versions 0-1: which SASL mechanism a client is about to use.

v1 says that SaslAuthenticate will carry what follows.
A connection to a PLAINTEXT or SSL listener has nothing to authenticate by SASL: ILLEGAL_SASL_STATE, and no mechanisms. Kafka
advertises it on every listener, and so do we: clients take a broker without it for one that is older than SASL.
Left out: SASL listeners.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 17, range(2)
LISTENERS = ("broker", "controller")


def handle(request: Any, ctx: RequestContext) -> Any:
    return messages.response(KEY)(error_code=ErrorCode.ILLEGAL_SASL_STATE)
