"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to or subtract from single keys.

v1 is flexible. Append and subtract are for keys that are lists. A value counts for all but delete.
Left out: alter.config.policy.class.name, log levels (8), client metrics (16), the keys of share and streams groups.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.config_changes import alter_resources
from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.config.alter import Alteration, Op
from strandline.controller.configs import alter
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

KEY: Final = 44
VERSIONS = range(2)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> Awaitable[IncrementalAlterConfigsResponse]:
    def change(
        image: MetadataImage, resource: IncrementalAlterConfigsRequest.AlterConfigsResource
    ) -> list[MetadataRecord]:
        alterations = [Alteration(config.name, _op(config), config.value) for config in resource.configs]
        groups_max = ctx.node.config.group_config_max_resources
        return alter(
            image, resource.resource_type, resource.resource_name, alterations, layers(ctx.node, image), groups_max
        )

    return alter_resources(
        request.resources,
        messages.response(KEY),
        ctx,
        change,
        validate_only=request.validate_only,
        wrongly_null=_wrongly_null,
    )


def _wrongly_null(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> list[str]:
    return [config.name for config in resource.configs if config.value is None and config.config_operation != Op.DELETE]


def _op(config: IncrementalAlterConfigsRequest.AlterableConfig) -> Op:
    try:
        return Op(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown operation {config.config_operation} on {config.name}"
        ) from None
