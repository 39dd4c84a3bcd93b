"""DescribeProducers (61), version 0: who writes to a partition with a producer id, and since where with a transaction open.

It is how a hanging transaction is found (KIP-664).
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, KafkaError
from strandline.log.names import topic_name_problem
from strandline.log.producers import Producer
from strandline.wire import messages

KEY, VERSIONS = 61, range(1)


def handle(request: Any, ctx: RequestContext) -> Any:
    response = messages.response(KEY)
    return response(
        topics=[
            response.TopicResponse(
                name=topic.name, partitions=[_describe(topic.name, index, ctx) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, ctx: RequestContext) -> Any:
    answer = messages.response(KEY).PartitionResponse(partition_index=index)
    try:
        if problem := topic_name_problem(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
        partition = ctx.broker.partition(topic, index)
        partition.check_leads()
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
        return answer
    answer.active_producers = [_state(producer) for producer in partition.log.producers.by_id.values()]
    return answer


def _state(producer: Producer) -> Any:
    return messages.response(KEY).ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
