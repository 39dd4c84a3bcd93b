"""DescribeProducers (61), version 0: who writes to a partition with a producer id, and since where with a transaction open.

It is how a hanging transaction is found (KIP-664). A partition that is named twice is described once; a follower describes what it
has, too.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode, KafkaError
from strandline.log.names import topic_name_problem
from strandline.log.producers import ProducerState
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_producers import DescribeProducersRequest, DescribeProducersResponse

KEY: Final = 61
VERSIONS = range(1)

STATE_BYTES = 37
"""Of one producer in the answer."""


def handle(request: DescribeProducersRequest, ctx: RequestContext) -> MaybePending[DescribeProducersResponse]:
    return answer(_describe_all(request, ctx), request, ctx)


def _describe_all(request: DescribeProducersRequest, ctx: RequestContext) -> Work[DescribeProducersResponse]:
    response = messages.response(KEY)
    reply = response()
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    for name, indexes in wanted.items():
        result = response.TopicResponse(name=name)
        for index in indexes:
            result.partitions.append((yield from _describe(name, index, ctx)))
            yield 0
        reply.topics.append(result)
    return reply


def _describe(topic: str, index: int, ctx: RequestContext) -> Work[DescribeProducersResponse.PartitionResponse]:
    described = messages.response(KEY).PartitionResponse(partition_index=index)
    try:
        if problem := topic_name_problem(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
        partition = ctx.node.partition(topic, index)
        partition.check_online()
    except KafkaError as error:
        described.error_code, described.error_message = error.code, error.message
        return described
    for producer in list(partition.log.producers.by_id.values()):
        described.active_producers.append(_state(producer))
        yield STATE_BYTES
    return described


def _state(producer: ProducerState) -> DescribeProducersResponse.ProducerState:
    return messages.response(KEY).ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
