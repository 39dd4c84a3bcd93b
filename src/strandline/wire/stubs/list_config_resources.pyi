"""ListConfigResources (74): its request, versions 0-1, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class ListConfigResourcesResponse(ApiResponse):
    class ConfigResource(TypedMessage):
        resource_name: str = ...
        resource_type: int = ...  # since v1

    throttle_time_ms: int = ...
    error_code: int = ...
    config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...

class ListConfigResourcesRequest(ApiRequest[ListConfigResourcesResponse]):
    resource_types: Sequence[int] = ...  # since v1
