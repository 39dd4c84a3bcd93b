"""AlterPartition (56), versions 2-3: a leader wants another ISR.

Brokers send it to the active controller. v2 names topics by id and may be answered INELIGIBLE_REPLICA or NEW_LEADER_ELECTED; v3
tells the broker epoch of each member, so that a replica that has restarted meanwhile is not taken for the one before.
A partition that is being reassigned is done once the ISR holds all that are added.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.alter_partition import ANY_EPOCH, Answer, NewIsr, alter
from strandline.controller.election_policy import policy_of
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition import AlterPartitionRequest, AlterPartitionResponse

KEY: Final = 56
VERSIONS = range(2, 4)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: AlterPartitionRequest, ctx: RequestContext) -> Awaitable[AlterPartitionResponse]:
    return _alter(request, ctx)


async def _alter(request: AlterPartitionRequest, ctx: RequestContext) -> AlterPartitionResponse:
    node, response = ctx.node, messages.response(KEY)
    wanted = [
        _new_isr(Uuid(topic.topic_id), partition, ctx.version)
        for topic in request.topics
        for partition in topic.partitions
    ]

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], list[Answer]]:
        policy = policy_of(image, layers(node, image))
        return alter(image, request.broker_id, request.broker_epoch, wanted, policy)

    try:
        answers = iter(await node.controller.decide(decision))
    except KafkaError as error:
        return response(error_code=error.code)
    return response(
        topics=[
            response.TopicData(
                topic_id=topic.topic_id,
                partitions=[_answer(partition.partition_index, next(answers)) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _new_isr(topic_id: Uuid, partition: AlterPartitionRequest.PartitionData, version: int) -> NewIsr:
    if version >= 3:
        isr = [(member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs]
    else:
        isr = [(broker_id, ANY_EPOCH) for broker_id in partition.new_isr]
    return NewIsr(
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        partition.leader_recovery_state,
    )


def _answer(index: int, answer: Answer) -> AlterPartitionResponse.PartitionData:
    PartitionData = messages.response(KEY).PartitionData
    if isinstance(answer, ErrorCode):
        return PartitionData(partition_index=index, error_code=answer)
    return PartitionData(
        partition_index=index,
        leader_id=answer.leader,
        leader_epoch=answer.leader_epoch,
        isr=list(answer.isr),
        leader_recovery_state=answer.leader_recovery_state,
        partition_epoch=answer.partition_epoch,
    )
