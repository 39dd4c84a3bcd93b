"""EndQuorumEpoch (54), versions 0-1: I lead no longer; who should next?

A leader that is about to stop says it to every voter, with the best candidates first (rule D15).
v1 is flexible, names the candidates' directories and the leader's endpoints (KIP-853).
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
    from strandline.wire.stubs.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

KEY: Final = 54
VERSIONS = range(2)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: EndQuorumEpochRequest, ctx: RequestContext) -> MaybePending[EndQuorumEpochResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    said = quorum.only_partition(quorum.partitions_by_topic(request))
    if said is None:
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    end = raft.EndQuorumEpochRequest(
        epoch=said.leader_epoch,
        leader_id=said.leader_id,
        preferred_candidates=_candidates(said, ctx.version),
        leader_endpoints=quorum.endpoints(request.leader_endpoints),
    )
    return quorum.ask(end, ctx, write_response)


def _candidates(said: EndQuorumEpochRequest.PartitionData, version: int) -> tuple[raft.ReplicaKey, ...]:
    if version == 0:
        return tuple(raft.ReplicaKey(candidate_id) for candidate_id in said.preferred_successors)
    return tuple(
        quorum.replica_key(candidate.candidate_id, candidate.candidate_directory_id)
        for candidate in said.preferred_candidates
    )


def write_request(end: raft.EndQuorumEpochRequest, cluster_id: str) -> EndQuorumEpochRequest:
    request = messages.request(KEY)
    partition = request.PartitionData(
        partition_index=quorum.PARTITION,
        leader_id=end.leader_id,
        leader_epoch=end.epoch,
        preferred_successors=[candidate.id for candidate in end.preferred_candidates],
        preferred_candidates=[
            request.ReplicaInfo(candidate_id=candidate.id, candidate_directory_id=candidate.directory_id)
            for candidate in end.preferred_candidates
        ],
    )
    return request(
        cluster_id=cluster_id,
        topics=[request.TopicData(topic_name=quorum.TOPIC, partitions=[partition])],
        leader_endpoints=quorum.listeners(request.LeaderEndpoint, end.leader_endpoints),
    )


def write_response(answer: raft.QuorumEpochResponse) -> EndQuorumEpochResponse:
    return quorum.write_epoch_response(messages.response(KEY), answer)


read_response = quorum.read_epoch_response
