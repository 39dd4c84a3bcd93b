"""UnregisterBroker (64), version 0: a broker is gone for good.

It leaves every ISR and ELR; replicas that were assigned to it stay assigned until they are reassigned. One that still runs
registers again by itself.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.brokers import unregister
from strandline.controller.election_policy import policy_of
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

KEY: Final = 64
VERSIONS = range(1)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: UnregisterBrokerRequest, ctx: RequestContext) -> Awaitable[UnregisterBrokerResponse]:
    return _unregister(request.broker_id, ctx)


async def _unregister(broker_id: int, ctx: RequestContext) -> UnregisterBrokerResponse:
    node = ctx.node

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], None]:
        records = unregister(image, broker_id, policy_of(image, layers(node, image)))
        node.controller.liveness.forget(broker_id)
        return records, None

    try:
        await node.controller.decide(decision)
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code, error_message=error.message)
    return messages.response(KEY)(error_message=None)
