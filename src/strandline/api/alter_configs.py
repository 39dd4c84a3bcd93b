"""AlterConfigs (33), versions 0-2: these are the only overrides of a topic, a broker or a group from now on.

v2 is flexible. What the request does not name is set back to its default: IncrementalAlterConfigs is the way to change one key.
Left out: alter.config.policy.class.name, log levels (8), client metrics (16), the keys of share and streams groups.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.config_changes import alter_resources
from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.configs import replace
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_configs import AlterConfigsRequest, AlterConfigsResponse

KEY: Final = 33
VERSIONS = range(3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: AlterConfigsRequest, ctx: RequestContext) -> Awaitable[AlterConfigsResponse]:
    def change(image: MetadataImage, resource: AlterConfigsRequest.AlterConfigsResource) -> list[MetadataRecord]:
        values = {config.name: config.value for config in resource.configs}
        groups_max = ctx.node.config.group_config_max_resources
        return replace(
            image, resource.resource_type, resource.resource_name, values, layers(ctx.node, image), groups_max
        )

    return alter_resources(
        request.resources,
        messages.response(KEY),
        ctx,
        change,
        validate_only=request.validate_only,
        wrongly_null=lambda resource: [config.name for config in resource.configs if config.value is None],
    )
