"""Fetch (1): its request, versions 4-18, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.ids import Uuid
from strandline.wire.codec import Buffer
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class FetchResponse(ApiResponse):
    class FetchableTopicResponse(TypedMessage):
        topic_id: Uuid = ...  # since v13
        partitions: list[FetchResponse.PartitionData] = ...
        topic: str = ...  # v4-v12

    class PartitionData(TypedMessage):
        partition_index: int = ...
        error_code: int = ...
        high_watermark: int = ...
        last_stable_offset: int = ...
        log_start_offset: int = ...  # since v5
        diverging_epoch: FetchResponse.EpochEndOffset = ...  # since v12
        current_leader: FetchResponse.LeaderIdAndEpoch = ...  # since v12
        snapshot_id: FetchResponse.SnapshotId = ...  # since v12
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...
        preferred_read_replica: int = ...  # since v11
        records: Buffer | None = ...

    class EpochEndOffset(TypedMessage):
        epoch: int = ...  # since v12
        end_offset: int = ...  # since v12

    class LeaderIdAndEpoch(TypedMessage):
        leader_id: int = ...  # since v12
        leader_epoch: int = ...  # since v12

    class SnapshotId(TypedMessage):
        end_offset: int = ...  # since v12
        epoch: int = ...  # since v12

    class AbortedTransaction(TypedMessage):
        producer_id: int = ...
        first_offset: int = ...

    class NodeEndpoint(TypedMessage):
        node_id: int = ...  # since v16
        host: str = ...  # since v16
        port: int = ...  # since v16
        rack: str | None = ...  # since v16

    throttle_time_ms: int = ...
    error_code: int = ...  # since v7
    session_id: int = ...  # since v7
    responses: list[FetchResponse.FetchableTopicResponse] = ...
    node_endpoints: list[FetchResponse.NodeEndpoint] = ...  # since v16

class FetchRequest(ApiRequest[FetchResponse]):
    class ReplicaState(TypedMessage):
        replica_id: int = ...  # since v15
        replica_epoch: int = ...  # since v15

    class FetchTopic(TypedMessage):
        topic_id: Uuid = ...  # since v13
        partitions: list[FetchRequest.FetchPartition] = ...
        topic: str = ...  # v4-v12

    class FetchPartition(TypedMessage):
        partition: int = ...
        current_leader_epoch: int = ...  # since v9
        fetch_offset: int = ...
        last_fetched_epoch: int = ...  # since v12
        log_start_offset: int = ...  # since v5
        partition_max_bytes: int = ...
        replica_directory_id: Uuid = ...  # since v17
        high_watermark: int = ...  # since v18

    class ForgottenTopic(TypedMessage):
        topic_id: Uuid = ...  # since v13
        partitions: Sequence[int] = ...  # since v7
        topic: str = ...  # v7-v12

    cluster_id: str | None = ...  # since v12
    replica_state: FetchRequest.ReplicaState = ...  # since v15
    max_wait_ms: int = ...
    min_bytes: int = ...
    max_bytes: int = ...
    isolation_level: int = ...
    session_id: int = ...  # since v7
    session_epoch: int = ...  # since v7
    topics: list[FetchRequest.FetchTopic] = ...
    forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...  # since v7
    rack_id: str = ...  # since v11
    replica_id: int = ...  # v4-v14
