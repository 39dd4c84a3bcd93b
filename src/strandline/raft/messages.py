"""What the members of the quorum say to each other, and what is asked of them.

These are Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, Add-, Remove- and UpdateRaftVoter without
their wrapping: cluster id, topic and partition are checked where the bytes are read, before Raft sees them.

Always true: a message never changes; a response carries the sender's epoch and the leader it knows (-1 for none), so that
its reader learns of a newer epoch even from a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid

NO_NODE = -1
"""The leader id of an epoch without a known leader, the id of a voter that was not voted for."""


class ReplicaKey(NamedTuple):
    """A node and the directory of its metadata log: a node that lost its disk is another replica."""

    id: int
    directory_id: Uuid = ZERO_UUID
    """All zeros where it is not known: with static voters no message has it."""


class OffsetAndEpoch(NamedTuple):
    """The id of a snapshot, or the end of an epoch in a log."""

    offset: int
    epoch: int


class Address(NamedTuple):
    host: str
    port: int


Endpoints = Mapping[str, Address]
"""Where a controller listens, by listener name. The first one is the one that the quorum uses."""


class VoteRequest(NamedTuple):
    voter: ReplicaKey
    """Whom the candidate means to ask."""
    epoch: int
    candidate: ReplicaKey
    last_epoch: int
    last_epoch_end_offset: int
    pre_vote: bool


class VoteResponse(NamedTuple):
    error: ErrorCode
    epoch: int
    leader_id: int
    granted: bool = False
    leader_address: Address | None = None


class BeginQuorumEpochRequest(NamedTuple):
    voter: ReplicaKey
    epoch: int
    leader_id: int
    leader_endpoints: Endpoints


class EndQuorumEpochRequest(NamedTuple):
    epoch: int
    leader_id: int
    preferred_candidates: tuple[ReplicaKey, ...]
    leader_endpoints: Endpoints


class QuorumEpochResponse(NamedTuple):
    """To BeginQuorumEpoch, EndQuorumEpoch and UpdateRaftVoter."""

    error: ErrorCode
    epoch: int
    leader_id: int
    leader_address: Address | None = None


class RaftFetchRequest(NamedTuple):
    replica: ReplicaKey
    epoch: int
    """The leader epoch that the replica believes in; -1 if it does not say."""
    offset: int
    last_fetched_epoch: int
    max_wait_s: float
    high_watermark: int = -1
    """What the replica knows of it, -1 for nothing; one that does not say (before Fetch version 18) means 2^63-1."""
    max_bytes: int = 2**31 - 1


class RaftFetchResponse(NamedTuple):
    error: ErrorCode
    epoch: int
    leader_id: int
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    """The replica is too far behind: it is to fetch this snapshot."""
    read_from: int | None = None
    """In an answer of ours: the log from here on goes along, as `records`."""
    records: bytes = b""
    leader_address: Address | None = None


class FetchSnapshotRequest(NamedTuple):
    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class FetchSnapshotResponse(NamedTuple):
    error: ErrorCode
    epoch: int
    leader_id: int
    snapshot_id: OffsetAndEpoch = OffsetAndEpoch(-1, -1)
    size: int = 0
    position: int = 0
    chunk: bytes = b""
    """In an answer of ours it is read when the answer is written."""
    leader_address: Address | None = None


class AddVoterRequest(NamedTuple):
    voter: ReplicaKey
    endpoints: Endpoints
    timeout_s: float
    ack_when_committed: bool = True


class RemoveVoterRequest(NamedTuple):
    voter: ReplicaKey


class UpdateVoterRequest(NamedTuple):
    epoch: int
    voter: ReplicaKey
    endpoints: Endpoints
    kraft_versions: range


class VoterChangeResponse(NamedTuple):
    """To AddRaftVoter and RemoveRaftVoter."""

    error: ErrorCode
    message: str | None = None


class ApiVersionsRequest(NamedTuple):
    """Sent to a node before it becomes a voter: does it know kraft.version 1?"""


class ApiVersionsResponse(NamedTuple):
    error: ErrorCode
    kraft_versions: range = range(0)


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | RaftFetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | ApiVersionsRequest
)
Response = (
    VoteResponse
    | QuorumEpochResponse
    | RaftFetchResponse
    | FetchSnapshotResponse
    | VoterChangeResponse
    | ApiVersionsResponse
)
