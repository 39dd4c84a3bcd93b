"""UnregisterBroker (64): its request, versions 0-0, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse

class UnregisterBrokerResponse(ApiResponse):
    throttle_time_ms: int = ...
    error_code: int = ...
    error_message: str | None = ...

class UnregisterBrokerRequest(ApiRequest[UnregisterBrokerResponse]):
    broker_id: int = ...
