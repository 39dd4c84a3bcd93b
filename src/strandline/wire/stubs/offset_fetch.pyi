"""OffsetFetch (9): its request, versions 1-10, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.ids import Uuid
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class OffsetFetchResponse(ApiResponse):
    class OffsetFetchResponseGroup(TypedMessage):
        group_id: str = ...  # since v8
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...  # since v8
        error_code: int = ...  # since v8

    class OffsetFetchResponseTopics(TypedMessage):
        topic_id: Uuid = ...  # since v10
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...  # since v8
        name: str = ...  # v8-v9

    class OffsetFetchResponsePartitions(TypedMessage):
        partition_index: int = ...  # since v8
        committed_offset: int = ...  # since v8
        committed_leader_epoch: int = ...  # since v8
        metadata: str | None = ...  # since v8
        error_code: int = ...  # since v8

    class OffsetFetchResponseTopic(TypedMessage):
        name: str = ...  # v1-v7
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...  # v1-v7

    class OffsetFetchResponsePartition(TypedMessage):
        partition_index: int = ...  # v1-v7
        committed_offset: int = ...  # v1-v7
        committed_leader_epoch: int = ...  # v5-v7
        metadata: str | None = ...  # v1-v7
        error_code: int = ...  # v1-v7

    throttle_time_ms: int = ...  # since v3
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...  # since v8
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...  # v1-v7
    error_code: int = ...  # v2-v7

class OffsetFetchRequest(ApiRequest[OffsetFetchResponse]):
    class OffsetFetchRequestGroup(TypedMessage):
        group_id: str = ...  # since v8
        member_id: str | None = ...  # since v9
        member_epoch: int = ...  # since v9
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...  # since v8

    class OffsetFetchRequestTopics(TypedMessage):
        topic_id: Uuid = ...  # since v10
        partition_indexes: Sequence[int] = ...  # since v8
        name: str = ...  # v8-v9

    class OffsetFetchRequestTopic(TypedMessage):
        name: str = ...  # v1-v7
        partition_indexes: Sequence[int] = ...  # v1-v7

    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...  # since v8
    require_stable: bool = ...  # since v7
    group_id: str = ...  # v1-v7
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...  # v1-v7
