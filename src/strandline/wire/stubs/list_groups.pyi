"""ListGroups (16): its request, versions 0-5, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class ListGroupsResponse(ApiResponse):
    class ListedGroup(TypedMessage):
        group_id: str = ...
        protocol_type: str = ...
        group_state: str = ...  # since v4
        group_type: str = ...  # since v5

    throttle_time_ms: int = ...  # since v1
    error_code: int = ...
    groups: list[ListGroupsResponse.ListedGroup] = ...

class ListGroupsRequest(ApiRequest[ListGroupsResponse]):
    states_filter: list[str] = ...  # since v4
    types_filter: list[str] = ...  # since v5
