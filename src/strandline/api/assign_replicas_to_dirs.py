"""AssignReplicasToDirs (73), version 0: a broker tells in which of its log dirs its replicas are.

Brokers send it to the active controller, which can then tell whom a log dir that fails takes along.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.dir_assignments import ReplicaDirAssignment, assign
from strandline.controller.election_policy import policy_of
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

KEY: Final = 73
VERSIONS = range(1)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: AssignReplicasToDirsRequest, ctx: RequestContext) -> Awaitable[AssignReplicasToDirsResponse]:
    return _assign(request, ctx)


async def _assign(request: AssignReplicasToDirsRequest, ctx: RequestContext) -> AssignReplicasToDirsResponse:
    node, response = ctx.node, messages.response(KEY)
    assigned = [
        ReplicaDirAssignment(Uuid(directory.id), Uuid(topic.topic_id), partition.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], list[ErrorCode]]:
        policy = policy_of(image, layers(node, image))
        return assign(image, request.broker_id, request.broker_epoch, assigned, policy)

    try:
        codes = iter(await node.controller.decide(decision))
    except KafkaError as error:
        return response(error_code=error.code)
    return response(
        directories=[
            response.DirectoryData(
                id=directory.id,
                topics=[
                    response.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            response.PartitionData(partition_index=partition.partition_index, error_code=next(codes))
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
