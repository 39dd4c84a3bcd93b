"""What AlterConfigs and IncrementalAlterConfigs have in common: resources, each of which is changed or answered with a reason.

Always true: a resource or a key that is named twice is not changed at all; a change that would leave an invalid whole is
refused as a whole; other resources of the request are changed nevertheless. Any broker takes changes for any other: it is the
controller that decides, and it knows which brokers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.api.changes import resources
from strandline.api.changes.decisions import decide_each
from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_configs import AlterConfigsResponse
    from strandline.wire.stubs.incremental_alter_configs import IncrementalAlterConfigsResponse


class AlteredConfig(Protocol):
    @property
    def name(self) -> str: ...


class AlteredResource(Protocol):
    """A resource as both requests have it."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> Sequence[AlteredConfig]: ...


ResourceT = TypeVar("ResourceT", bound=AlteredResource)
ResponseT = TypeVar("ResponseT", "AlterConfigsResponse", "IncrementalAlterConfigsResponse")


async def alter_resources(
    altered: Sequence[ResourceT],
    response: type[ResponseT],
    ctx: RequestContext,
    change: Callable[[MetadataImage, ResourceT], list[MetadataRecord]],
    *,
    validate_only: bool,
    wrongly_null: Callable[[ResourceT], list[str]],
) -> ResponseT:
    """The reply, once what may be changed is committed. `wrongly_null` names the configs of a resource that need a value and
    have none."""
    repeated = resources.repeated((r.resource_type, r.resource_name) for r in altered)

    def decide(image: MetadataImage, resource: ResourceT) -> list[MetadataRecord]:
        if (resource.resource_type, resource.resource_name) in repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        _check(resource, wrongly_null(resource))
        try:
            return change(image, resource)
        except KafkaError as error:
            if resource.resource_type == resources.BROKER and error.code is ErrorCode.INVALID_CONFIG:
                # Kafka has always called it so for brokers, and clients go by that (KAFKA-13609).
                raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None
            raise

    outcomes = await decide_each(ctx.node, altered, decide, validate_only=validate_only)
    reply = response()
    for resource, outcome in zip(altered, outcomes, strict=True):
        answer = response.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        if isinstance(outcome, KafkaError):
            answer.error_code, answer.error_message = outcome.code, outcome.message
        reply.responses.append(answer)
    return reply


def _check(resource: AlteredResource, nulls: list[str]) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    if resource.resource_type == resources.BROKER_LOGGER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Log levels of a running broker can't be altered: it has no loggers to set."
        )
