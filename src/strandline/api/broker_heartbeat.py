"""BrokerHeartbeat (63), versions 0-2: a broker is alive, and wants to be unfenced, fenced or stopped.

It tells how far it has applied the metadata; the answer tells whether that is enough, whether it is fenced now, and whether it
may stop (rules B13, B14). Its connection is one by which the controller knows that it is alive; while that is open and in use, a
heartbeat that comes on another one is answered and changes nothing (SEC-Z16).
v1 tells of log dirs that failed (KIP-858), v2 of log dirs that shall get no new partitions (KIP-1066).
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.election_policy import policy_of
from strandline.controller.heartbeats import BrokerHeartbeat, BrokerHeartbeatReply, heartbeat
from strandline.errors import KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

KEY: Final = 63
VERSIONS = range(3)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: BrokerHeartbeatRequest, ctx: RequestContext) -> Awaitable[BrokerHeartbeatResponse]:
    said = BrokerHeartbeat(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline_log_dirs=_ids(request.offline_log_dirs),
        cordoned_log_dirs=None if request.cordoned_log_dirs is None else _ids(request.cordoned_log_dirs),
        connection=ctx.connection_id,
    )
    return _heartbeat(said, ctx)


def _ids(directories: Iterable[bytes]) -> list[Uuid]:
    return [Uuid(directory) for directory in directories]


async def _heartbeat(said: BrokerHeartbeat, ctx: RequestContext) -> BrokerHeartbeatResponse:
    node = ctx.node
    known = node.metadata.image().brokers.get(said.broker_id)
    if node.controller.quorum.is_active and known is not None and known.epoch == said.broker_epoch:
        # A long decision may be under way: the heartbeat counts from now on, not from when its turn comes.
        node.controller.liveness.contact(known.broker_id, known.epoch, node.clock.monotonic())

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], BrokerHeartbeatReply]:
        now = node.clock.monotonic()
        return heartbeat(image, node.controller.liveness, said, now, policy_of(image, layers(node, image)))

    try:
        answer = await node.controller.decide(decision)
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code)
    return messages.response(KEY)(
        is_caught_up=answer.is_caught_up, is_fenced=answer.is_fenced, should_shut_down=answer.should_shut_down
    )
