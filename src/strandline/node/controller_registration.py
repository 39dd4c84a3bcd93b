"""The registration of a controller with the active one, so that the cluster knows where its controllers are and what
they support.

Always true: it is sent again until the metadata has it, also after this node was started anew (another incarnation).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.api import controller_registration as api
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import Uuid
from strandline.metadata.features import SUPPORTED
from strandline.metadata.image import Endpoint, MetadataImage
from strandline.metadata.records import RegisterControllerRecord
from strandline.node.controller_channel import ControllerChannel
from strandline.node.image_watch import ImageWatch
from strandline.node.logger import Logger
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.controller_registration import ControllerRegistrationRequest

TRY_AGAIN_S = 0.5
SEEN_WITHIN_S = 2.0
REQUEST_TIMEOUT_S = 5.0
REGISTRATION_SINCE_METADATA_VERSION = 15


async def keep_registered(
    node_id: int,
    incarnation_id: Uuid,
    endpoints: Sequence[Endpoint],
    watch: ImageWatch,
    channel: ControllerChannel,
    logger: Logger,
) -> None:
    """Runs as long as the node does."""

    def is_missing(image: MetadataImage) -> bool:
        if image.features.get("metadata.version", 0) < REGISTRATION_SINCE_METADATA_VERSION:
            return False
        record = image.others.get((RegisterControllerRecord.KEY, node_id))
        return not isinstance(record, RegisterControllerRecord) or record.incarnation_id != incarnation_id

    while True:
        await watch.until(is_missing)
        try:
            response = await channel.ask(
                api.KEY, _request(node_id, incarnation_id, endpoints), REQUEST_TIMEOUT_S, retry=True
            )
        except KafkaError as error:
            logger.info("could not register with the active controller yet", error=str(error))
        else:
            if response.error_code == ErrorCode.NONE:
                await watch.until(lambda image: not is_missing(image), SEEN_WITHIN_S)
                continue
            logger.info("registration refused", error=error_code(response.error_code).name)
        await asyncio.sleep(TRY_AGAIN_S)


def _request(node_id: int, incarnation_id: Uuid, endpoints: Sequence[Endpoint]) -> ControllerRegistrationRequest:
    request = messages.request(api.KEY)
    return request(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=[
            request.Listener(
                name=endpoint.listener,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=endpoint.security_protocol,
            )
            for endpoint in endpoints
        ],
        features=[
            request.Feature(name=name, min_supported_version=levels[0], max_supported_version=levels[-1])
            for name, levels in SUPPORTED.items()
        ],
    )
