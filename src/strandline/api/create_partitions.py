"""CreatePartitions (37), versions 0-3: more partitions for topics that exist.

v2 is flexible; v3 knows THROTTLING_QUOTA_EXCEEDED. The count is the one to grow to; partitions can't be taken away.
Assignments, if given, are one list of brokers for each new partition.
Left out: controller mutation quotas, the timeout (an answer comes once the partitions are committed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.decisions import decide_each
from strandline.api.context import RequestContext
from strandline.controller.topics import add_partitions
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

KEY: Final = 37
VERSIONS = range(4)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: CreatePartitionsRequest, ctx: RequestContext) -> Awaitable[CreatePartitionsResponse]:
    return _create(request, ctx)


async def _create(request: CreatePartitionsRequest, ctx: RequestContext) -> CreatePartitionsResponse:
    node, response = ctx.node, messages.response(KEY)
    counts = Counter(topic.name for topic in request.topics)

    def decide(image: MetadataImage, topic: CreatePartitionsRequest.CreatePartitionsTopic) -> list[MetadataRecord]:
        if counts[topic.name] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        assignments = None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
        return add_partitions(image, topic.name, topic.count, assignments, node.randomness)

    topics = list({topic.name: topic for topic in request.topics}.values())
    outcomes = await decide_each(node, topics, decide, validate_only=request.validate_only)
    results = []
    for topic, outcome in zip(topics, outcomes, strict=True):
        result = response.CreatePartitionsTopicResult(name=topic.name)
        if isinstance(outcome, KafkaError):
            result.error_code, result.error_message = outcome.code, outcome.message
        results.append(result)
    return response(results=results)
