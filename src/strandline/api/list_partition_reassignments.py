"""ListPartitionReassignments (46), version 0: which partitions are on their way to other replicas.

Without topics it is for all. Partitions that are not being reassigned, or not there, are left out of the answer.
Left out: the timeout (the answer comes at once).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from strandline.api.context import RequestContext
from strandline.controller.reassignments import under_way
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

KEY, VERSIONS = 46, range(1)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: Any, ctx: RequestContext) -> Awaitable[Any]:
    return _list(request, ctx)


async def _list(request: Any, ctx: RequestContext) -> Any:
    response = messages.response(KEY)

    def look(image: MetadataImage) -> tuple[list[MetadataRecord], list[Any]]:
        if request.topics is None:
            found = [_topic(topic, None) for topic in image.topics.values()]
        else:
            named = [(image.topics.get(topic.name), topic.partition_indexes) for topic in request.topics]
            found = [_topic(topic, indexes) for topic, indexes in named if topic is not None]
        return [], [topic for topic in found if topic.partitions]

    # It decides nothing, but only the active controller knows the newest.
    try:
        return response(topics=await ctx.broker.decide(look), error_message=None)
    except KafkaError as error:
        return response(error_code=error.code, error_message=error.message)


def _topic(topic: TopicImage, indexes: list[int] | None) -> Any:
    response = messages.response(KEY)
    return response.OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            response.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for index, partition in under_way(topic, indexes)
        ],
    )
