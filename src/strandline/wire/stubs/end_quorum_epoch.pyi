"""EndQuorumEpoch (54): its request, versions 0-1, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.ids import Uuid
from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class EndQuorumEpochResponse(ApiResponse):
    class TopicData(TypedMessage):
        topic_name: str = ...
        partitions: list[EndQuorumEpochResponse.PartitionData] = ...

    class PartitionData(TypedMessage):
        partition_index: int = ...
        error_code: int = ...
        leader_id: int = ...
        leader_epoch: int = ...

    class NodeEndpoint(TypedMessage):
        node_id: int = ...  # since v1
        host: str = ...  # since v1
        port: int = ...  # since v1

    error_code: int = ...
    topics: list[EndQuorumEpochResponse.TopicData] = ...
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...  # since v1

class EndQuorumEpochRequest(ApiRequest[EndQuorumEpochResponse]):
    class TopicData(TypedMessage):
        topic_name: str = ...
        partitions: list[EndQuorumEpochRequest.PartitionData] = ...

    class PartitionData(TypedMessage):
        partition_index: int = ...
        leader_id: int = ...
        leader_epoch: int = ...
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...  # since v1
        preferred_successors: Sequence[int] = ...  # v0

    class ReplicaInfo(TypedMessage):
        candidate_id: int = ...  # since v1
        candidate_directory_id: Uuid = ...  # since v1

    class LeaderEndpoint(TypedMessage):
        name: str = ...  # since v1
        host: str = ...  # since v1
        port: int = ...  # since v1

    cluster_id: str | None = ...
    topics: list[EndQuorumEpochRequest.TopicData] = ...
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...  # since v1
