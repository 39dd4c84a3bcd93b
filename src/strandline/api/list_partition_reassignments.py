"""ListPartitionReassignments (46), version 0: which partitions are on their way to other replicas.

Without topics it is for all. Partitions that are not being reassigned, or not there, are left out of the answer.
Left out: the timeout (the answer comes at once).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.slices import in_turns
from strandline.controller.reassignments import under_way
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.metadata.records import MetadataRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )

KEY: Final = 46
VERSIONS = range(1)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(
    request: ListPartitionReassignmentsRequest, ctx: RequestContext
) -> Awaitable[ListPartitionReassignmentsResponse]:
    return _list(request, ctx)


async def _list(request: ListPartitionReassignmentsRequest, ctx: RequestContext) -> ListPartitionReassignmentsResponse:
    response = messages.response(KEY)

    def look(image: MetadataImage) -> tuple[list[MetadataRecord], MetadataImage]:
        return [], image

    def describe(image: MetadataImage) -> Work[list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]]:
        wanted: dict[str, dict[int, None] | None] = {}
        if request.topics is None:
            wanted = dict.fromkeys(image.topics)
        for topic in request.topics or ():
            named = wanted.setdefault(topic.name, {})
            assert named is not None, "either all topics are asked for or these"
            named.update(dict.fromkeys(topic.partition_indexes))
            yield 0
        found = []
        for name, indexes in wanted.items():
            if (present := image.topics.get(name)) is not None:
                described = _topic(present, indexes)
                if described.partitions:
                    found.append(described)
            yield 0
        return found

    # It decides nothing, but only the active controller knows the newest.
    try:
        image = await ctx.node.controller.decide(look)
        topics = await in_turns(describe(image), ctx.node.clock.monotonic)
        return response(topics=topics, error_message=None)
    except KafkaError as error:
        return response(error_code=error.code, error_message=error.message)


def _topic(
    topic: TopicImage, indexes: Iterable[int] | None
) -> ListPartitionReassignmentsResponse.OngoingTopicReassignment:
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
