"""Vote (52), versions 0-2: will you vote for me in this epoch?

A candidate asks every voter; a voter says yes once per epoch, and only to a log at least as long as its own (rule D2).
v1 names the voter and the directories (KIP-853) and tells where the leader is; v2 brings the pre-vote (KIP-996).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, error_code
from strandline.raft import messages as raft
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.vote import VoteRequest, VoteResponse

KEY: Final = 52
VERSIONS = range(3)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: VoteRequest, ctx: RequestContext) -> MaybePending[VoteResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = quorum.only_partition(quorum.partitions_by_topic(request))
    if asked is None:
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    vote = raft.VoteRequest(
        voter=quorum.addressee(request.voter_id, asked.voter_directory_id, ctx),
        epoch=asked.replica_epoch,
        candidate=quorum.replica_key(asked.replica_id, asked.replica_directory_id),
        last_epoch=asked.last_offset_epoch,
        last_epoch_end_offset=asked.last_offset,
        pre_vote=asked.pre_vote,
    )
    return quorum.ask(vote, ctx, write_response)


def write_request(vote: raft.VoteRequest, cluster_id: str) -> VoteRequest:
    request = messages.request(KEY)
    partition = request.PartitionData(
        partition_index=quorum.PARTITION,
        replica_epoch=vote.epoch,
        replica_id=vote.candidate.id,
        replica_directory_id=vote.candidate.directory_id,
        voter_directory_id=vote.voter.directory_id,
        last_offset_epoch=vote.last_epoch,
        last_offset=vote.last_epoch_end_offset,
        pre_vote=vote.pre_vote,
    )
    topic = request.TopicData(topic_name=quorum.TOPIC, partitions=[partition])
    return request(cluster_id=cluster_id, voter_id=vote.voter.id, topics=[topic])


def write_response(vote: raft.VoteResponse) -> VoteResponse:
    response = messages.response(KEY)
    partition = response.PartitionData(
        partition_index=quorum.PARTITION,
        error_code=vote.error,
        leader_id=vote.leader_id,
        leader_epoch=vote.epoch,
        vote_granted=vote.granted,
    )
    return response(
        topics=[response.TopicData(topic_name=quorum.TOPIC, partitions=[partition])],
        node_endpoints=quorum.node_endpoints(response.NodeEndpoint, vote.leader_id, vote.leader_address),
    )


def read_response(response: VoteResponse) -> raft.VoteResponse:
    said = quorum.answered_partition(response.error_code, quorum.partitions_by_topic(response))
    address = quorum.address_of(response.node_endpoints, said.leader_id)
    return raft.VoteResponse(error_code(said.error_code), said.leader_epoch, said.leader_id, said.vote_granted, address)
