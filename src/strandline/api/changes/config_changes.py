"""What AlterConfigs and IncrementalAlterConfigs have in common: resources, each of which is changed or answered with a reason.

Always true: a resource or a key that is named twice is not changed at all; a change that would leave an invalid whole is
refused as a whole; other resources of the request are changed nevertheless. Any broker takes changes for any other: it is the
controller that decides, and it knows which brokers there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.api.changes import resources
from strandline.api.changes.decisions import decide_each
from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord

Change = Callable[[MetadataImage, Any], list[MetadataRecord]]


async def alter_resources(
    request: Any, response: Any, ctx: RequestContext, change: Change, *, may_be_null: Callable[[Any], bool]
) -> Any:
    """The reply, once what may be changed is committed. `may_be_null` tells of which configs the value does not count."""
    repeated = resources.repeated((r.resource_type, r.resource_name) for r in request.resources)

    def decide(image: MetadataImage, resource: Any) -> list[MetadataRecord]:
        if (resource.resource_type, resource.resource_name) in repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        _check(resource, may_be_null)
        try:
            return change(image, resource)
        except KafkaError as error:
            if resource.resource_type == resources.BROKER and error.code is ErrorCode.INVALID_CONFIG:
                # Kafka has always called it so for brokers, and clients go by that (KAFKA-13609).
                raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None
            raise

    outcomes = await decide_each(ctx.node, request.resources, decide, validate_only=request.validate_only)
    reply = response()
    for resource, outcome in zip(request.resources, outcomes, strict=True):
        answer = response.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        if isinstance(outcome, KafkaError):
            answer.error_code, answer.error_message = outcome.code, outcome.message
        reply.responses.append(answer)
    return reply


def _check(resource: Any, may_be_null: Callable[[Any], bool]) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [config.name for config in resource.configs if config.value is None and not may_be_null(config)]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    if resource.resource_type == resources.BROKER_LOGGER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Log levels of a running broker can't be altered: it has no loggers to set."
        )
