"""AlterPartitionReassignments (45), versions 0-1: move partitions to other replicas, or cancel that.

The answer comes once the reassignments have begun; ListPartitionReassignments tells which are under way. v1 may forbid to
change the replication factor.
Left out: the timeout (an answer comes once the beginning is committed).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.decisions import check_count
from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.election_policy import policy_of
from strandline.controller.reassignments import alter
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )

KEY: Final = 45
VERSIONS = range(2)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    return _alter(request, ctx)


async def _alter(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext
) -> AlterPartitionReassignmentsResponse:
    node, response = ctx.node, messages.response(KEY)
    wanted = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]

    def decision(image: MetadataImage) -> Work[tuple[list[MetadataRecord], list[KafkaError | None]]]:
        policy = policy_of(image, layers(node, image))
        records: list[MetadataRecord] = []
        outcomes: list[KafkaError | None] = []
        seen = set()
        for topic, partition in wanted:
            yield 0
            key = (topic, partition.partition_index)
            try:
                if key in seen:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition is named twice.")
                seen.add(key)
                record = alter(
                    image,
                    *key,
                    partition.replicas,
                    policy,
                    allow_replication_factor_change=request.allow_replication_factor_change,
                )
            except KafkaError as error:
                outcomes.append(error)
                continue
            outcomes.append(None)
            if record is not None:
                records.append(record)
        return records, outcomes

    answer = response(allow_replication_factor_change=request.allow_replication_factor_change, error_message=None)
    try:
        check_count(len(wanted))
        outcomes = iter(await node.controller.decide(decision))
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
        outcomes = iter([error] * len(wanted))
    answer.responses = [
        response.ReassignableTopicResponse(
            name=topic.name,
            partitions=[_result(partition.partition_index, next(outcomes)) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return answer


def _result(index: int, error: KafkaError | None) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
    result = messages.response(KEY).ReassignablePartitionResponse(partition_index=index, error_message=None)
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    return result
