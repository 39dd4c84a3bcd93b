"""Metadata (3): its request, versions 0-13, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.ids import Uuid
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class MetadataResponse(ApiResponse):
    class MetadataResponseBroker(TypedMessage):
        node_id: int = ...
        host: str = ...
        port: int = ...
        rack: str | None = ...  # since v1

    class MetadataResponseTopic(TypedMessage):
        error_code: int = ...
        name: str | None = ...
        topic_id: Uuid = ...  # since v10
        is_internal: bool = ...  # since v1
        partitions: list[MetadataResponse.MetadataResponsePartition] = ...
        topic_authorized_operations: int = ...  # since v8

    class MetadataResponsePartition(TypedMessage):
        error_code: int = ...
        partition_index: int = ...
        leader_id: int = ...
        leader_epoch: int = ...  # since v7
        replica_nodes: Sequence[int] = ...
        isr_nodes: Sequence[int] = ...
        offline_replicas: Sequence[int] = ...  # since v5

    throttle_time_ms: int = ...  # since v3
    brokers: list[MetadataResponse.MetadataResponseBroker] = ...
    cluster_id: str | None = ...  # since v2
    controller_id: int = ...  # since v1
    topics: list[MetadataResponse.MetadataResponseTopic] = ...
    error_code: int = ...  # since v13
    cluster_authorized_operations: int = ...  # v8-v10

class MetadataRequest(ApiRequest[MetadataResponse]):
    class MetadataRequestTopic(TypedMessage):
        topic_id: Uuid = ...  # since v10
        name: str | None = ...

    topics: list[MetadataRequest.MetadataRequestTopic] | None = ...
    allow_auto_topic_creation: bool = ...  # since v4
    include_topic_authorized_operations: bool = ...  # since v8
    include_cluster_authorized_operations: bool = ...  # v8-v10
