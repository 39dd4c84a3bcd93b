"""LeaveGroup (13): its request, versions 0-5, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class LeaveGroupResponse(ApiResponse):
    class MemberResponse(TypedMessage):
        member_id: str = ...  # since v3
        group_instance_id: str | None = ...  # since v3
        error_code: int = ...  # since v3

    throttle_time_ms: int = ...  # since v1
    error_code: int = ...
    members: list[LeaveGroupResponse.MemberResponse] = ...  # since v3

class LeaveGroupRequest(ApiRequest[LeaveGroupResponse]):
    class MemberIdentity(TypedMessage):
        member_id: str = ...  # since v3
        group_instance_id: str | None = ...  # since v3
        reason: str | None = ...  # since v5

    group_id: str = ...
    members: list[LeaveGroupRequest.MemberIdentity] = ...  # since v3
    member_id: str = ...  # v0-v2
