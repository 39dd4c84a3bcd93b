"""Heartbeat (12): its request, versions 0-4, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse

class HeartbeatResponse(ApiResponse):
    throttle_time_ms: int = ...  # since v1
    error_code: int = ...

class HeartbeatRequest(ApiRequest[HeartbeatResponse]):
    group_id: str = ...
    generation_id: int = ...
    member_id: str = ...
    group_instance_id: str | None = ...  # since v3
