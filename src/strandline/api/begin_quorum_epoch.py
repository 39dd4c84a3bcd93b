"""BeginQuorumEpoch (53), versions 0-1: I lead this epoch.

A new leader says it to every voter until that voter fetches from it.
v1 is flexible, names the voter and its directory and the leader's endpoints (KIP-853).
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.errors import ErrorCode
from strandline.raft.messages import BeginQuorumEpochRequest, QuorumEpochResponse
from strandline.wire import messages

KEY, VERSIONS = 53, range(2)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: Any, ctx: RequestContext) -> Any:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    said = quorum.only_partition(quorum.partitions_by_topic(request))
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
    return quorum.write_epoch_response(messages.response(KEY), answer)


read_response = quorum.read_epoch_response
