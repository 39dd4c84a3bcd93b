"""AddRaftVoter (80), versions 0-1: let this replica vote.

It must have caught up with the leader's log; the answer comes when the new set of voters is committed (KIP-853, rule D13).
v1 may ask for an answer as soon as the set is written (KIP-1186).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, error_code
from strandline.ids import ZERO_UUID
from strandline.raft.messages import AddVoterRequest, VoterChangeResponse
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

KEY: Final = 80
VERSIONS = range(2)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: AddRaftVoterRequest, ctx: RequestContext) -> MaybePending[AddRaftVoterResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return write_response(
            VoterChangeResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this cluster is {ctx.node.cluster_id}")
        )
    voter = quorum.replica_key(request.voter_id, request.voter_directory_id)
    if voter.id < 0 or voter.directory_id == ZERO_UUID or not request.listeners:
        return write_response(
            VoterChangeResponse(ErrorCode.INVALID_REQUEST, "a voter has an id, a directory id and a listener")
        )
    add = AddVoterRequest(
        voter, quorum.endpoints(request.listeners), max(request.timeout_ms, 0) / 1000, request.ack_when_committed
    )
    return quorum.ask(add, ctx, write_response)


def write_request(add: AddVoterRequest, cluster_id: str) -> AddRaftVoterRequest:
    request = messages.request(KEY)
    return request(
        cluster_id=cluster_id,
        timeout_ms=round(add.timeout_s * 1000),
        voter_id=add.voter.id,
        voter_directory_id=add.voter.directory_id,
        listeners=quorum.listeners(request.Listener, add.endpoints),
        ack_when_committed=add.ack_when_committed,
    )


def write_response(answer: VoterChangeResponse) -> AddRaftVoterResponse:
    return messages.response(KEY)(error_code=answer.error, error_message=answer.message)


def read_response(response: AddRaftVoterResponse) -> VoterChangeResponse:
    return VoterChangeResponse(error_code(response.error_code), response.error_message)
