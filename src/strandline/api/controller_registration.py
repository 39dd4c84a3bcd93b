"""ControllerRegistration (70), version 0: a controller tells where it listens and which features it supports.

Left out: the migration from ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.controller.controllers import ControllerRegistration, register
from strandline.errors import KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import Endpoint
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )

KEY: Final = 70
VERSIONS = range(1)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: ControllerRegistrationRequest, ctx: RequestContext) -> Awaitable[ControllerRegistrationResponse]:
    wanted = ControllerRegistration(
        controller_id=request.controller_id,
        incarnation_id=Uuid(request.incarnation_id),
        endpoints=[Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
        features=[(f.name, f.min_supported_version, f.max_supported_version) for f in request.features],
    )
    return _register(wanted, ctx)


async def _register(wanted: ControllerRegistration, ctx: RequestContext) -> ControllerRegistrationResponse:
    try:
        await ctx.node.controller.decide(lambda image: (register(image, wanted), None))
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code, error_message=error.message)
    return messages.response(KEY)(error_message=None)
