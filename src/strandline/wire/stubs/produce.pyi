"""Produce (0): its request, versions 3-13, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.ids import Uuid
from strandline.wire.codec import Buffer
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class ProduceResponse(ApiResponse):
    class TopicProduceResponse(TypedMessage):
        topic_id: Uuid = ...  # since v13
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...
        name: str = ...  # v3-v12

    class PartitionProduceResponse(TypedMessage):
        index: int = ...
        error_code: int = ...
        base_offset: int = ...
        log_append_time_ms: int = ...
        log_start_offset: int = ...  # since v5
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...  # since v8
        error_message: str | None = ...  # since v8
        current_leader: ProduceResponse.LeaderIdAndEpoch = ...  # since v10

    class BatchIndexAndErrorMessage(TypedMessage):
        batch_index: int = ...  # since v8
        batch_index_error_message: str | None = ...  # since v8

    class LeaderIdAndEpoch(TypedMessage):
        leader_id: int = ...  # since v10
        leader_epoch: int = ...  # since v10

    class NodeEndpoint(TypedMessage):
        node_id: int = ...  # since v10
        host: str = ...  # since v10
        port: int = ...  # since v10
        rack: str | None = ...  # since v10

    responses: list[ProduceResponse.TopicProduceResponse] = ...
    throttle_time_ms: int = ...
    node_endpoints: list[ProduceResponse.NodeEndpoint] = ...  # since v10

class ProduceRequest(ApiRequest[ProduceResponse]):
    class TopicProduceData(TypedMessage):
        topic_id: Uuid = ...  # since v13
        partition_data: list[ProduceRequest.PartitionProduceData] = ...
        name: str = ...  # v3-v12

    class PartitionProduceData(TypedMessage):
        index: int = ...
        records: Buffer | None = ...

    transactional_id: str | None = ...
    acks: int = ...
    timeout_ms: int = ...
    topic_data: list[ProduceRequest.TopicProduceData] = ...
