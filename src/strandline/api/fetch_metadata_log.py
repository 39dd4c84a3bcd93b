"""Fetch (1) on a controller's listener, versions 4-18: what follows in the metadata log?

Members of the quorum and brokers replicate `__cluster_metadata` with it, and nothing else is there to fetch. A reader that is
at the end waits, and is answered at once when records or a new high watermark come (rule D10).
v12 finds diverging logs and names the snapshot to fetch instead, v13 names the topic by its id, v16 tells where the leader
is, v17 says the reader's directory (KIP-853), v18 the high watermark it knows (KIP-1166).
Left out: sessions, of which the quorum makes no use; a request for anything but the metadata partition is INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, error_code
from strandline.raft.messages import OffsetAndEpoch, RaftFetchRequest, RaftFetchResponse
from strandline.wire import messages
from strandline.wire.fetch import REPLICA_STATE_SINCE

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchRequest, FetchResponse

KEY: Final = 1
VERSIONS = range(4, 19)
LISTENERS, CLUSTER_ACTION = ("controller",), True

NONE = -1
"""The epoch in a tagged field that was not sent."""


def handle(request: FetchRequest, ctx: RequestContext) -> MaybePending[FetchResponse]:
    if quorum.is_other_cluster(request.cluster_id, ctx):
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = quorum.only_partition(_asked(request))
    if asked is None:
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    replica_id = request.replica_state.replica_id if ctx.version >= REPLICA_STATE_SINCE else request.replica_id
    fetch = RaftFetchRequest(
        replica=quorum.replica_key(replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        offset=asked.fetch_offset,
        last_fetched_epoch=asked.last_fetched_epoch,
        max_wait_s=max(request.max_wait_ms, 0) / 1000,
        high_watermark=asked.high_watermark,
        max_bytes=max(0, min(request.max_bytes, asked.partition_max_bytes)),
    )
    return quorum.ask(fetch, ctx, write_response)


def write_request(fetch: RaftFetchRequest, cluster_id: str) -> FetchRequest:
    request = messages.request(KEY)
    partition = request.FetchPartition(
        partition=quorum.PARTITION,
        current_leader_epoch=fetch.epoch,
        fetch_offset=fetch.offset,
        last_fetched_epoch=fetch.last_fetched_epoch,
        partition_max_bytes=fetch.max_bytes,
        replica_directory_id=fetch.replica.directory_id,
        high_watermark=fetch.high_watermark,
    )
    topic = request.FetchTopic(topic=quorum.TOPIC, topic_id=quorum.TOPIC_ID, partitions=[partition])
    return request(
        cluster_id=cluster_id,
        replica_id=fetch.replica.id,
        replica_state=request.ReplicaState(replica_id=fetch.replica.id),
        max_wait_ms=round(fetch.max_wait_s * 1000),
        min_bytes=0,
        max_bytes=fetch.max_bytes,
        topics=[topic],
    )


def write_response(answer: RaftFetchResponse) -> FetchResponse:
    response = messages.response(KEY)
    partition = response.PartitionData(
        partition_index=quorum.PARTITION,
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        current_leader=response.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
        aborted_transactions=None,
        records=answer.records,
    )
    if answer.diverging_epoch is not None:
        end_offset, epoch = answer.diverging_epoch
        partition.diverging_epoch = response.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if answer.snapshot_id is not None:
        end_offset, epoch = answer.snapshot_id
        partition.snapshot_id = response.SnapshotId(epoch=epoch, end_offset=end_offset)
    topic = response.FetchableTopicResponse(topic=quorum.TOPIC, topic_id=quorum.TOPIC_ID, partitions=[partition])
    return response(
        responses=[topic],
        node_endpoints=quorum.node_endpoints(response.NodeEndpoint, answer.leader_id, answer.leader_address),
    )


def read_response(response: FetchResponse) -> RaftFetchResponse:
    said = quorum.answered_partition(response.error_code, _answered(response))
    leader, diverging, snapshot = said.current_leader, said.diverging_epoch, said.snapshot_id
    return RaftFetchResponse(
        error=error_code(said.error_code),
        epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        high_watermark=said.high_watermark,
        log_start_offset=said.log_start_offset,
        diverging_epoch=None if diverging.epoch == NONE else OffsetAndEpoch(diverging.end_offset, diverging.epoch),
        snapshot_id=None if snapshot.epoch == NONE else OffsetAndEpoch(snapshot.end_offset, snapshot.epoch),
        records=bytes(said.records or b""),
        leader_address=quorum.address_of(response.node_endpoints, leader.leader_id),
    )


def _asked(
    request: FetchRequest,
) -> list[tuple[str | bytes, list[tuple[int, FetchRequest.FetchPartition]]]]:
    return [(t.topic or t.topic_id, [(p.partition, p) for p in t.partitions]) for t in request.topics]


def _answered(
    response: FetchResponse,
) -> list[tuple[str | bytes, list[tuple[int, FetchResponse.PartitionData]]]]:
    return [(t.topic or t.topic_id, [(p.partition_index, p) for p in t.partitions]) for t in response.responses]
