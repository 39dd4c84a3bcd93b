"""Raft's requests on their way to another node, and the answers back.

Always true: what may be parked at the other end (Fetch, FetchSnapshot) has a connection of its own, so a vote never waits
behind it; every request ends in its time, with an answer or with an exception that says why there is none.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from strandline import __version__
from strandline.api import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch_metadata_log,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from strandline.client.core import versions
from strandline.errors import KafkaError, error_code
from strandline.node.peers import ConnectionLost, Peers
from strandline.raft.events import Destination
from strandline.raft.messages import (
    Address,
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    RaftFetchRequest,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
)
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import API_VERSIONS

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

FETCH, VOTE = "fetch", "vote"
"""What the two connections to a node are for."""
UNANSWERED = (KafkaError, MalformedRequest)
"""What takes the place of an answer."""

_APIS: dict[type[Request], ModuleType] = {
    VoteRequest: vote,
    BeginQuorumEpochRequest: begin_quorum_epoch,
    EndQuorumEpochRequest: end_quorum_epoch,
    RaftFetchRequest: fetch_metadata_log,
    FetchSnapshotRequest: fetch_snapshot,
    AddVoterRequest: add_raft_voter,
    RemoveVoterRequest: remove_raft_voter,
    UpdateVoterRequest: update_raft_voter,
}


class RaftRequestSender:
    def __init__(self, peers: Peers, cluster_id: str, timeout_s: float) -> None:
        self._peers = peers
        self._cluster_id = cluster_id
        self._timeout_s = timeout_s
        self._bootstrap: dict[Address, int] = {}

    async def ask(self, to: Destination, request: Request) -> Response:
        """The answer, or one of UNANSWERED."""
        if isinstance(request, ApiVersionsRequest):
            return await self._ask_versions(to)
        api = _APIS[type(request)]
        purpose = FETCH if isinstance(request, (RaftFetchRequest, FetchSnapshotRequest)) else VOTE
        timeout_s = self._timeout_s + (request.max_wait_s if isinstance(request, RaftFetchRequest) else 0.0)
        message = api.write_request(request, self._cluster_id)
        # Fields that an older node does not know are left out. A pre-vote is then a vote, of which the sender makes no use.
        reply = await self._ask(to, purpose, api.KEY, message, timeout_s, api.VERSIONS[-1])
        answer: Response = api.read_response(reply)
        return answer

    async def _ask_versions(self, to: Destination) -> ApiVersionsResponse:
        question = messages.request(API_VERSIONS)(
            client_software_name=versions.SOFTWARE_NAME, client_software_version=__version__
        )
        reply = await self._ask(to, VOTE, API_VERSIONS, question, self._timeout_s, versions.NEWEST)
        levels = next(
            (
                range(feature.min_version, feature.max_version + 1)
                for feature in reply.supported_features
                if feature.name == "kraft.version"
            ),
            range(1),
        )
        return ApiVersionsResponse(error_code(reply.error_code), levels)

    async def _ask(
        self, to: Destination, purpose: str, key: int, message: ApiRequest[R], timeout_s: float, version_max: int
    ) -> R:
        peer = self._peers.connection(self._node_id(to), to.address, purpose)
        try:
            return await peer.ask(key, message, timeout_s, version_max=version_max)
        except RuntimeError as error:
            # A transport that is closed and has not said so yet refuses to be written to.
            raise ConnectionLost(str(error)) from None

    def _node_id(self, to: Destination) -> int:
        """Of a bootstrap server only the address is known: each gets a number below -1 that stands for it."""
        if to.id >= 0:
            return to.id
        return self._bootstrap.setdefault(to.address, -2 - len(self._bootstrap))
