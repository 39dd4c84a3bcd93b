"""BeginQuorumEpoch (53), versions 0-1: I lead this epoch.

A new leader says it to every voter until that voter fetches from it.
v1 is flexible, names the voter and its directory and the leader's endpoints (KIP-853).
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api import metadata_partition as quorum
from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, error_code
from strandline.raft.messages import BeginQuorumEpochRequest, QuorumEpochResponse
from strandline.wire import messages

KEY, VERSIONS = 53, range(2)
LISTENERS = ("controller",)


def handle(request: Any, ctx: RequestContext) -> Any:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    said = quorum.only_partition(_partitions(request))
    if said is None:
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    begin = BeginQuorumEpochRequest(
        voter=quorum.addressee(request.voter_id, said.voter_directory_id, ctx),
        epoch=said.leader_epoch,
        leader_id=said.leader_id,
        leader_endpoints=quorum.endpoints(request.leader_endpoints),
    )
    return quorum.ask(begin, ctx, write_response)


def write_request(begin: BeginQuorumEpochRequest, cluster_id: str) -> Any:
    request = messages.request(KEY)
    partition = request.PartitionData(
        partition_index=quorum.PARTITION,
        voter_directory_id=begin.voter.directory_id,
        leader_id=begin.leader_id,
        leader_epoch=begin.epoch,
    )
    return request(
        cluster_id=cluster_id,
        voter_id=begin.voter.id,
        topics=[request.TopicData(topic_name=quorum.TOPIC, partitions=[partition])],
        leader_endpoints=quorum.listeners(request.LeaderEndpoint, begin.leader_endpoints),
    )


def write_response(answer: QuorumEpochResponse) -> Any:
    response = messages.response(KEY)
    partition = response.PartitionData(
        partition_index=quorum.PARTITION,
        error_code=answer.error,
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
    )
    return response(
        topics=[response.TopicData(topic_name=quorum.TOPIC, partitions=[partition])],
        node_endpoints=quorum.node_endpoints(response.NodeEndpoint, answer.leader_id, answer.leader_address),
    )


def read_response(response: Any) -> QuorumEpochResponse:
    said = quorum.answered_partition(response.error_code, _partitions(response))
    address = quorum.address_of(response.node_endpoints, said.leader_id)
    return QuorumEpochResponse(error_code(said.error_code), said.leader_epoch, said.leader_id, address)


def _partitions(message: Any) -> Any:
    return [(topic.topic_name, [(p.partition_index, p) for p in topic.partitions]) for topic in message.topics]
