"""SaslAuthenticate (36): its request, versions 0-2, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse

class SaslAuthenticateResponse(ApiResponse):
    error_code: int = ...
    error_message: str | None = ...
    auth_bytes: bytes = ...
    session_lifetime_ms: int = ...  # since v1

class SaslAuthenticateRequest(ApiRequest[SaslAuthenticateResponse]):
    auth_bytes: bytes = ...
