"""RemoveRaftVoter (81), version 0: let this replica vote no longer.

The answer comes when the smaller set of voters is committed; a leader that is taken out resigns then (KIP-853, rule D13).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, error_code
from strandline.ids import ZERO_UUID
from strandline.raft.messages import RemoveVoterRequest, VoterChangeResponse
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

KEY: Final = 81
VERSIONS = range(1)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: RemoveRaftVoterRequest, ctx: RequestContext) -> MaybePending[RemoveRaftVoterResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return write_response(
            VoterChangeResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this cluster is {ctx.node.cluster_id}")
        )
    voter = quorum.replica_key(request.voter_id, request.voter_directory_id)
    if voter.id < 0 or voter.directory_id == ZERO_UUID:
        return write_response(VoterChangeResponse(ErrorCode.INVALID_REQUEST, "a voter has an id and a directory id"))
    return quorum.ask(RemoveVoterRequest(voter), ctx, write_response)


def write_request(remove: RemoveVoterRequest, cluster_id: str) -> RemoveRaftVoterRequest:
    return messages.request(KEY)(
        cluster_id=cluster_id, voter_id=remove.voter.id, voter_directory_id=remove.voter.directory_id
    )


def write_response(answer: VoterChangeResponse) -> RemoveRaftVoterResponse:
    return messages.response(KEY)(error_code=answer.error, error_message=answer.message)


def read_response(response: RemoveRaftVoterResponse) -> VoterChangeResponse:
    return VoterChangeResponse(error_code(response.error_code), response.error_message)
