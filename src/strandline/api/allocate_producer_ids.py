"""AllocateProducerIds (67), version 0: a block of producer ids for a broker to give out.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.controller.producer_ids import allocate
from strandline.errors import KafkaError
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

KEY: Final = 67
VERSIONS = range(1)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: AllocateProducerIdsRequest, ctx: RequestContext) -> Awaitable[AllocateProducerIdsResponse]:
    return _allocate(request.broker_id, request.broker_epoch, ctx)


async def _allocate(broker_id: int, broker_epoch: int, ctx: RequestContext) -> AllocateProducerIdsResponse:
    try:
        block = await ctx.node.controller.decide(lambda image: allocate(image, broker_id, broker_epoch))
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code)
    return messages.response(KEY)(producer_id_start=block.start, producer_id_len=len(block))
