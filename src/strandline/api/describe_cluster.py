"""DescribeCluster (60), versions 0-2: the cluster's id and its brokers.

v1 says whether brokers or controllers are meant, of which a broker knows the first; v2 can list fenced brokers too.
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.authorized_operations import CLUSTER_OPERATIONS
from strandline.api.cluster_view import ClusterView
from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 60, range(3)

BROKERS, CONTROLLERS = 1, 2


def handle(request: Any, ctx: RequestContext) -> Any:
    response = messages.response(KEY)
    if request.endpoint_type == CONTROLLERS:
        return response(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return response(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    view = ClusterView(ctx.broker.image().brokers, ctx.listener)
    reply = response(
        cluster_id=ctx.broker.cluster_id,
        # Any broker passes on what is for the controller, so the one that was asked will do.
        controller_id=ctx.broker.node_id if ctx.broker.node_id in view.alive else -1,
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
    if request.include_cluster_authorized_operations:
        reply.cluster_authorized_operations = CLUSTER_OPERATIONS
    return reply
