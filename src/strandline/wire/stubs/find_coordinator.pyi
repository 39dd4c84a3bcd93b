"""FindCoordinator (10): its request, versions 0-6, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class FindCoordinatorResponse(ApiResponse):
    class Coordinator(TypedMessage):
        key: str = ...  # since v4
        node_id: int = ...  # since v4
        host: str = ...  # since v4
        port: int = ...  # since v4
        error_code: int = ...  # since v4
        error_message: str | None = ...  # since v4

    throttle_time_ms: int = ...  # since v1
    coordinators: list[FindCoordinatorResponse.Coordinator] = ...  # since v4
    error_code: int = ...  # v0-v3
    error_message: str | None = ...  # v1-v3
    node_id: int = ...  # v0-v3
    host: str = ...  # v0-v3
    port: int = ...  # v0-v3

class FindCoordinatorRequest(ApiRequest[FindCoordinatorResponse]):
    key_type: int = ...  # since v1
    coordinator_keys: list[str] = ...  # since v4
    key: str = ...  # v0-v3
