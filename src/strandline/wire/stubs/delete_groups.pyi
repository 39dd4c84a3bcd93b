"""DeleteGroups (42): its request, versions 0-2, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class DeleteGroupsResponse(ApiResponse):
    class DeletableGroupResult(TypedMessage):
        group_id: str = ...
        error_code: int = ...

    throttle_time_ms: int = ...
    results: list[DeleteGroupsResponse.DeletableGroupResult] = ...

class DeleteGroupsRequest(ApiRequest[DeleteGroupsResponse]):
    groups_names: list[str] = ...
