"""DescribeCluster (60), versions 0-2: the cluster's id and its brokers, or its controllers.

v1 says whether brokers or controllers are meant: a broker's listener tells of the first, a controller's of the second, and either
answers MISMATCHED_ENDPOINT_TYPE to the other and names the client's option (KIP-919); v0 means brokers and knows only
INVALID_REQUEST. v2 can list fenced brokers too.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.cluster.authorized_operations import CLUSTER_OPERATIONS
from strandline.api.cluster.view import ClusterView
from strandline.api.context import RequestContext
from strandline.controller.controllers import registered
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

KEY: Final = 60
VERSIONS = range(3)
LISTENERS = ("broker", "controller")

BROKERS, CONTROLLERS = 1, 2
_NAMES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
_OPTIONS = {BROKERS: "bootstrap.servers", CONTROLLERS: "bootstrap.controllers"}


def handle(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    response = messages.response(KEY)
    asked, wanted = CONTROLLERS if _is_controller(ctx) else BROKERS, request.endpoint_type
    if wanted not in _NAMES:
        return response(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {wanted}"
        )
    if wanted != asked:
        return response(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if ctx.version else ErrorCode.INVALID_REQUEST,
            error_message=f"The request was sent to an endpoint of type {_NAMES[asked]}, but we wanted an endpoint of type "
            f"{_NAMES[wanted]}; {_OPTIONS[asked]} is the client's option for this address",
        )
    reply = _controllers(ctx) if asked == CONTROLLERS else _brokers(request, ctx)
    reply.cluster_id = ctx.node.cluster_id
    reply.endpoint_type = asked
    if request.include_cluster_authorized_operations:
        reply.cluster_authorized_operations = CLUSTER_OPERATIONS
    return reply


def _is_controller(ctx: RequestContext) -> bool:
    return ctx.listener in ctx.node.config.controller_listener_names


def _brokers(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    response = messages.response(KEY)
    view = ClusterView(ctx.node.metadata.image().brokers, ctx.listener)
    return response(
        # Any broker passes on what is for the controller, so the one that was asked will do.
        controller_id=ctx.node.node_id if ctx.node.node_id in view.alive else -1,
        brokers=[
            response.DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker, endpoint in view.nodes(fenced=request.include_fenced_brokers)
        ],
    )


def _controllers(ctx: RequestContext) -> DescribeClusterResponse:
    response = messages.response(KEY)
    return response(
        controller_id=ctx.node.controller.quorum.leader[1],
        brokers=[
            response.DescribeClusterBroker(broker_id=controller.controller_id, host=endpoint.host, port=endpoint.port)
            for _, controller in sorted(registered(ctx.node.metadata.image()).items())
            for endpoint in controller.end_points
            if endpoint.name == ctx.listener
        ],
    )
