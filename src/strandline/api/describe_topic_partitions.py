"""DescribeTopicPartitions (75), version 0: partitions with their eligible leader replicas, a page at a time (KIP-966).

Topics come in the order of their names. A page ends after the number of partitions that was asked for, or that
`max.request.partition.size.limit` allows; the cursor then says where the next one starts.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.cluster.authorized_operations import TOPIC_OPERATIONS
from strandline.api.cluster.view import ClusterView
from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.log.names import topic_name_problem
from strandline.metadata.image import INTERNAL_TOPICS, PartitionImage, TopicImage
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )

    _Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    _Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition

KEY: Final = 75
VERSIONS = range(1)


def handle(
    request: DescribeTopicPartitionsRequest, ctx: RequestContext
) -> MaybePending[DescribeTopicPartitionsResponse]:
    return answer(_describe(request, ctx), request, ctx)


def _describe(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> Work[DescribeTopicPartitionsResponse]:
    response = messages.response(KEY)
    image, cursor = ctx.node.metadata.image(), request.cursor
    named = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        # The message has no place for an error but the topics themselves.
        return response(topics=[_failed(name, ErrorCode.INVALID_REQUEST) for name in sorted(named)])

    first_topic = "" if cursor is None else cursor.topic_name
    first_index = 0 if cursor is None else cursor.partition_index
    view = ClusterView(image.brokers, ctx.listener)
    left = max(min(ctx.node.config.max_request_partition_size_limit, request.response_partition_limit), 1)
    reply = response()
    for name in sorted(name for name in (named or image.topics) if name >= first_topic):
        if not left:
            reply.next_cursor = response.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            unknown = (
                ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            reply.topics.append(_failed(name, unknown))
            yield len(name)
            continue
        start = first_index if name == first_topic else 0
        page = range(start, min(len(topic.partitions), start + left))
        reply.topics.append(_topic(topic, page, view))
        if page.stop < len(topic.partitions):
            reply.next_cursor = response.Cursor(topic_name=name, partition_index=page.stop)
            break
        left -= len(page)
        yield len(name)
    return reply


def _failed(name: str, error: ErrorCode) -> _Topic:
    return messages.response(KEY).DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(topic: TopicImage, page: range, view: ClusterView) -> _Topic:
    return messages.response(KEY).DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(index, topic.partitions[index], view) for index in page],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(index: int, partition: PartitionImage, view: ClusterView) -> _Partition:
    return messages.response(KEY).DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader if partition.leader in view.reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=view.offline_replicas(partition),
    )
