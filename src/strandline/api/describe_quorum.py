"""DescribeQuorum (55), versions 0-2: who votes, who observes, and how far has each come?

Only the leader knows; a broker passes the question on to it.
v1 tells when each replica last fetched and was last caught up (KIP-836); v2 the directories and the voters' endpoints.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.quorum import metadata_partition as quorum
from strandline.errors import ErrorCode
from strandline.raft.replicas import ReplicaDescription
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

KEY: Final = 55
VERSIONS = range(3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: DescribeQuorumRequest, ctx: RequestContext) -> DescribeQuorumResponse:
    response = messages.response(KEY)
    asked = [(topic.topic_name, [(p.partition_index, p) for p in topic.partitions]) for topic in request.topics]
    if quorum.only_partition(asked) is None:
        return response(
            topics=[
                response.TopicData(
                    topic_name=name,
                    partitions=[_refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for index, _ in partitions],
                )
                for name, partitions in asked
            ]
        )
    facts = ctx.node.controller.quorum.describe()
    if facts.leader_id != ctx.node.node_id:
        refused = _refused(quorum.PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return response(topics=[response.TopicData(topic_name=quorum.TOPIC, partitions=[refused])])
    partition = response.PartitionData(
        partition_index=quorum.PARTITION,
        leader_id=facts.leader_id,
        leader_epoch=facts.epoch,
        high_watermark=facts.high_watermark,
        current_voters=[_replica(state, ctx) for state in facts.voters],
        observers=[_replica(state, ctx) for state in facts.observers],
    )
    nodes = [
        response.Node(node_id=voter.key.id, listeners=quorum.listeners(response.Listener, voter.endpoints))
        for voter in facts.voters
    ]
    return response(topics=[response.TopicData(topic_name=quorum.TOPIC, partitions=[partition])], nodes=nodes)


def _refused(index: int, error: ErrorCode) -> DescribeQuorumResponse.PartitionData:
    return messages.response(KEY).PartitionData(partition_index=index, error_code=error)


def _replica(state: ReplicaDescription, ctx: RequestContext) -> DescribeQuorumResponse.ReplicaState:
    return messages.response(KEY).ReplicaState(
        replica_id=state.key.id,
        replica_directory_id=state.key.directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=_wall_ms(state.last_fetch_at, ctx),
        last_caught_up_timestamp=_wall_ms(state.last_caught_up_at, ctx),
    )


def _wall_ms(at: float | None, ctx: RequestContext) -> int:
    """A moment of the monotonic clock as time of day; -1 for never."""
    if at is None:
        return -1
    return ctx.now_ms - round((ctx.node.clock.monotonic() - at) * 1000)
