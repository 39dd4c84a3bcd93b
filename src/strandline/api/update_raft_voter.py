"""UpdateRaftVoter (82), version 0: these are my endpoints, and the levels of kraft.version that I know.

A voter tells its leader after a start, if what the voters' record says of it is out of date (KIP-853).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, error_code
from strandline.ids import ZERO_UUID
from strandline.raft.messages import NO_NODE, Address, QuorumEpochResponse, UpdateVoterRequest
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

KEY: Final = 82
VERSIONS = range(1)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: UpdateRaftVoterRequest, ctx: RequestContext) -> MaybePending[UpdateRaftVoterResponse]:
    epoch, leader_id = ctx.node.controller.quorum.leader
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return write_response(QuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, epoch, leader_id))
    voter = quorum.replica_key(request.voter_id, request.voter_directory_id)
    levels = request.k_raft_version_feature
    lowest, highest = levels.min_supported_version, levels.max_supported_version
    if voter.id < 0 or voter.directory_id == ZERO_UUID or not request.listeners or not 0 <= lowest <= highest:
        return write_response(QuorumEpochResponse(ErrorCode.INVALID_REQUEST, epoch, leader_id))
    update = UpdateVoterRequest(
        request.current_leader_epoch, voter, quorum.endpoints(request.listeners), range(lowest, highest + 1)
    )
    return quorum.ask(update, ctx, write_response)


def write_request(update: UpdateVoterRequest, cluster_id: str) -> UpdateRaftVoterRequest:
    request = messages.request(KEY)
    return request(
        cluster_id=cluster_id,
        current_leader_epoch=update.epoch,
        voter_id=update.voter.id,
        voter_directory_id=update.voter.directory_id,
        listeners=quorum.listeners(request.Listener, update.endpoints),
        k_raft_version_feature=request.KRaftVersionFeature(
            min_supported_version=update.kraft_versions[0], max_supported_version=update.kraft_versions[-1]
        ),
    )


def write_response(answer: QuorumEpochResponse) -> UpdateRaftVoterResponse:
    response = messages.response(KEY)
    leader = response.CurrentLeader(leader_id=answer.leader_id, leader_epoch=answer.epoch)
    if answer.leader_address is not None:
        leader.host, leader.port = answer.leader_address
    return response(error_code=answer.error, current_leader=leader)


def read_response(response: UpdateRaftVoterResponse) -> QuorumEpochResponse:
    leader = response.current_leader
    address = Address(leader.host, leader.port) if leader.leader_id != NO_NODE and leader.host else None
    return QuorumEpochResponse(error_code(response.error_code), leader.leader_epoch, leader.leader_id, address)
