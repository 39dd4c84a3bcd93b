"""SaslHandshake (17): its request, versions 0-1, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse

class SaslHandshakeResponse(ApiResponse):
    error_code: int = ...
    mechanisms: list[str] = ...

class SaslHandshakeRequest(ApiRequest[SaslHandshakeResponse]):
    mechanism: str = ...
