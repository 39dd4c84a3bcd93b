"""BrokerRegistration (62), versions 0-4: a broker starts and wants to be part of the cluster.

The answer is its broker epoch, the offset of its registration in the metadata log. It is fenced until a heartbeat says that it
has applied that (rules B12, B13). While a broker of the same id is alive, another one is refused; the same one may ask again.
v1 could tell of a migration from ZooKeeper; v2 names log dirs (KIP-858); v3 tells the epoch it had when it last stopped in order
(KIP-966): unless that is the one we know, the broker may have lost what was not synced. v4 may name features whose lowest level
is 0 (KAFKA-17011).
Left out: the migration from ZooKeeper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.controller.brokers import BrokerRegistration, register
from strandline.controller.election_policy import policy_of
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import Endpoint, MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

KEY: Final = 62
VERSIONS = range(5)
LISTENERS, CLUSTER_ACTION = ("controller",), True


def handle(request: BrokerRegistrationRequest, ctx: RequestContext) -> MaybePending[BrokerRegistrationResponse]:
    if request.cluster_id != ctx.node.cluster_id:
        return messages.response(KEY)(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if request.is_migrating_zk_broker:
        return messages.response(KEY)(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    return _register(_registration(request), ctx)


def _registration(request: BrokerRegistrationRequest) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=request.broker_id,
        incarnation_id=Uuid(request.incarnation_id),
        endpoints=[Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
        features=[(f.name, f.min_supported_version, f.max_supported_version) for f in request.features],
        log_dirs=[Uuid(directory) for directory in request.log_dirs],
        rack=request.rack,
        previous_broker_epoch=request.previous_broker_epoch,
    )


async def _register(wanted: BrokerRegistration, ctx: RequestContext) -> BrokerRegistrationResponse:
    node = ctx.node

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], int]:
        now = node.clock.monotonic()
        records, epoch = register(
            image,
            wanted,
            policy_of(image, layers(node, image)),
            is_live=node.controller.liveness.is_live(wanted.broker_id, now),
            kraft_version=node.controller.quorum.kraft_version,
        )
        node.controller.liveness.contact(wanted.broker_id, epoch, now)
        node.controller.liveness.connection_opened(wanted.broker_id, ctx.connection_id, now)
        return records, epoch

    try:
        return messages.response(KEY)(broker_epoch=await node.controller.decide(decision))
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code)
