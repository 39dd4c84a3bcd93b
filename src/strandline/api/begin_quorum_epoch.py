"""BeginQuorumEpoch (53), versions 0-1: I lead this epoch.

A new leader says it to every voter until that voter fetches from it.
v1 is flexible, names the voter and its directory and the leader's endpoints (KIP-853).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode
from strandline.raft import messages as raft
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse

KEY: Final = 53
VERSIONS = range(2)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: BeginQuorumEpochRequest, ctx: RequestContext) -> MaybePending[BeginQuorumEpochResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    said = quorum.only_partition(quorum.partitions_by_topic(request))
    if said is None:
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    begin = raft.BeginQuorumEpochRequest(
        voter=quorum.addressee(request.voter_id, said.voter_directory_id, ctx),
        epoch=said.leader_epoch,
        leader_id=said.leader_id,
        leader_endpoints=quorum.endpoints(request.leader_endpoints),
    )
    return quorum.ask(begin, ctx, write_response)


def write_request(begin: raft.BeginQuorumEpochRequest, cluster_id: str) -> BeginQuorumEpochRequest:
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


def write_response(answer: raft.QuorumEpochResponse) -> BeginQuorumEpochResponse:
    return quorum.write_epoch_response(messages.response(KEY), answer)


read_response = quorum.read_epoch_response
