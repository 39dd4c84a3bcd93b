"""FetchSnapshot (59), versions 0-1: a part of a snapshot of the metadata, from this position on.

A reader that is too far behind for the log fetches the snapshot that the leader named, part by part (KIP-630).
v1 says the reader's directory and tells where the leader is (KIP-853).
Left out: nothing. A request that speaks of no partition at all is INVALID_REQUEST, as for all (CVE-2026-83525).
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
    from strandline.wire.stubs.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

KEY: Final = 59
VERSIONS = range(2)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: FetchSnapshotRequest, ctx: RequestContext) -> MaybePending[FetchSnapshotResponse]:
    response = messages.response(KEY)
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    said = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    if len(said) != 1:
        return response(error_code=ErrorCode.INVALID_REQUEST)
    [(name, asked)] = said
    if (name, asked.partition) != (quorum.TOPIC, quorum.PARTITION):
        refused = response.PartitionSnapshot(
            index=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unaligned_records=b""
        )
        return response(topics=[response.TopicSnapshot(name=name, partitions=[refused])])
    fetch = raft.FetchSnapshotRequest(
        replica=quorum.replica_key(request.replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        snapshot_id=raft.OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        position=asked.position,
        max_bytes=max(request.max_bytes, 0),
    )
    return quorum.ask(fetch, ctx, write_response)


def write_request(fetch: raft.FetchSnapshotRequest, cluster_id: str) -> FetchSnapshotRequest:
    request = messages.request(KEY)
    end_offset, epoch = fetch.snapshot_id
    partition = request.PartitionSnapshot(
        partition=quorum.PARTITION,
        current_leader_epoch=fetch.epoch,
        snapshot_id=request.SnapshotId(end_offset=end_offset, epoch=epoch),
        position=fetch.position,
        replica_directory_id=fetch.replica.directory_id,
    )
    return request(
        cluster_id=cluster_id,
        replica_id=fetch.replica.id,
        max_bytes=fetch.max_bytes,
        topics=[request.TopicSnapshot(name=quorum.TOPIC, partitions=[partition])],
    )


def write_response(answer: raft.FetchSnapshotResponse) -> FetchSnapshotResponse:
    response = messages.response(KEY)
    end_offset, epoch = answer.snapshot_id
    partition = response.PartitionSnapshot(
        index=quorum.PARTITION,
        error_code=answer.error,
        snapshot_id=response.SnapshotId(end_offset=end_offset, epoch=epoch),
        current_leader=response.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
        size=answer.size,
        position=answer.position,
        unaligned_records=answer.chunk,
    )
    return response(
        topics=[response.TopicSnapshot(name=quorum.TOPIC, partitions=[partition])],
        node_endpoints=quorum.node_endpoints(response.NodeEndpoint, answer.leader_id, answer.leader_address),
    )


def read_response(response: FetchSnapshotResponse) -> raft.FetchSnapshotResponse:
    topics = [(topic.name, [(p.index, p) for p in topic.partitions]) for topic in response.topics]
    said = quorum.answered_partition(response.error_code, topics)
    return raft.FetchSnapshotResponse(
        error=error_code(said.error_code),
        epoch=said.current_leader.leader_epoch,
        leader_id=said.current_leader.leader_id,
        snapshot_id=raft.OffsetAndEpoch(said.snapshot_id.end_offset, said.snapshot_id.epoch),
        size=said.size,
        position=said.position,
        chunk=bytes(said.unaligned_records or b""),
        leader_address=quorum.address_of(response.node_endpoints, said.current_leader.leader_id),
    )
