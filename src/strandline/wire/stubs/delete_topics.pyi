"""DeleteTopics (20): its request, versions 1-6, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.ids import Uuid
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class DeleteTopicsResponse(ApiResponse):
    class DeletableTopicResult(TypedMessage):
        name: str | None = ...
        topic_id: Uuid = ...  # since v6
        error_code: int = ...
        error_message: str | None = ...  # since v5

    throttle_time_ms: int = ...
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...

class DeleteTopicsRequest(ApiRequest[DeleteTopicsResponse]):
    class DeleteTopicState(TypedMessage):
        name: str | None = ...  # since v6
        topic_id: Uuid = ...  # since v6

    topics: list[DeleteTopicsRequest.DeleteTopicState] = ...  # since v6
    timeout_ms: int = ...
    topic_names: list[str] = ...  # v1-v5
