"""SaslHandshake (17), versions 0-1: which SASL mechanism a client is about to use.

v1 says that SaslAuthenticate will carry what follows.
A connection to a PLAINTEXT or SSL listener has nothing to authenticate by SASL: ILLEGAL_SASL_STATE, and no mechanisms. Kafka
advertises it on every listener, and so do we: clients take a broker without it for one that is older than SASL.
Left out: SASL listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

KEY: Final = 17
VERSIONS = range(2)
LISTENERS = ("broker", "controller")


def handle(request: SaslHandshakeRequest, ctx: RequestContext) -> SaslHandshakeResponse:
    return messages.response(KEY)(error_code=ErrorCode.ILLEGAL_SASL_STATE)
