"""ListConfigResources (74), versions 0-1: which resources can be configured?

v0 lists client metrics only; v1 lists the types that are asked for, or all of them: topics (2), brokers (4), broker loggers (8),
client metrics (16) and groups (32).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.changes import resources
from strandline.api.cluster.view import ClusterView
from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

KEY: Final = 74
VERSIONS = range(2)

_LISTED = {
    0: (resources.CLIENT_METRICS,),
    1: (resources.GROUP, resources.CLIENT_METRICS, resources.BROKER_LOGGER, resources.BROKER, resources.TOPIC),
}
"""The resource types of each version, in the order of the answer."""


def handle(request: ListConfigResourcesRequest, ctx: RequestContext) -> MaybePending[ListConfigResourcesResponse]:
    response = messages.response(KEY)
    listed = _LISTED[ctx.version]
    if not set(request.resource_types) <= set(listed):
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return answer(_list(request, listed, ctx), request, ctx)


def _list(
    request: ListConfigResourcesRequest, listed: tuple[int, ...], ctx: RequestContext
) -> Work[ListConfigResourcesResponse]:
    reply, wanted = messages.response(KEY)(), set(request.resource_types)
    for resource_type in listed:
        if wanted and resource_type not in wanted:
            continue
        for name in _names(resource_type, ctx):
            resource = messages.response(KEY).ConfigResource(resource_name=name, resource_type=resource_type)
            reply.config_resources.append(resource)
            yield len(name)
    return reply


def _names(resource_type: int, ctx: RequestContext) -> list[str]:
    image = ctx.node.metadata.image()
    if resource_type == resources.TOPIC:
        return list(image.topics)
    if resource_type in (resources.BROKER, resources.BROKER_LOGGER):
        return [str(broker_id) for broker_id in ClusterView(image.brokers, ctx.listener).reachable]
    return [name for kind, name in image.configs if kind == resource_type]
