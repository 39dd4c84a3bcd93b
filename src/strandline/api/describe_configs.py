"""DescribeConfigs (32), versions 1-4: what topics, groups and this broker are set to, and where each value comes from.

v1 has sources and synonyms; v3 types and documentation; v4 is flexible. Resources are topics (2), this broker by its id (4),
the defaults of all brokers (4, with an empty name), groups (32), whether they exist or not, and this broker's loggers (8), of
which there are none to set. A resource that is named twice with the same keys is described once.
The rows are those of Kafka 4.3: keys that are refused show their default, on a broker as read-only; internal ones are not listed.
The value of a sensitive key is never shown.
Left out: client metrics (16), which have no configuration here: their list is empty; the keys of share and streams groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.changes import resources
from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.config.describe import (
    ConfigRow,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_topic,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.log.names import topic_name_problem
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

KEY: Final = 32
VERSIONS = range(1, 5)
LISTENERS = ("broker", "controller")


ROW_BYTES = 16
"""What an entry of the answer has beside its texts, or nearly."""


def handle(request: DescribeConfigsRequest, ctx: RequestContext) -> MaybePending[DescribeConfigsResponse]:
    return answer(_describe_all(request, ctx), request, ctx)


def _describe_all(request: DescribeConfigsRequest, ctx: RequestContext) -> Work[DescribeConfigsResponse]:
    reply = messages.response(KEY)()
    wanted = {
        (
            resource.resource_type,
            resource.resource_name,
            None if resource.configuration_keys is None else frozenset(resource.configuration_keys),
        ): resource
        for resource in request.resources
    }
    for resource in wanted.values():
        result = _describe(resource, request, ctx)
        reply.results.append(result)
        yield sum(map(_size_bytes, result.configs))
    return reply


def _size_bytes(entry: DescribeConfigsResponse.DescribeConfigsResourceResult) -> int:
    texts = (
        entry.name,
        entry.value,
        entry.documentation,
        *(part for s in entry.synonyms for part in (s.name, s.value)),
    )
    return ROW_BYTES + sum(len(text) for text in texts if text)


def _describe(
    resource: DescribeConfigsRequest.DescribeConfigsResource, request: DescribeConfigsRequest, ctx: RequestContext
) -> DescribeConfigsResponse.DescribeConfigsResult:
    result = messages.response(KEY).DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        rows = _rows(resource.resource_type, resource.resource_name, resource.configuration_keys, ctx)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    result.configs = [_entry(row, request) for row in rows]
    return result


def _rows(resource_type: int, name: str, keys: list[str] | None, ctx: RequestContext) -> list[ConfigRow]:
    """All settings of a resource, or those that are named in `keys`."""
    node, image = ctx.node, ctx.node.metadata.image()
    layers = resources.layers(node, image)
    names = None if keys is None else frozenset(keys)
    if resource_type == resources.TOPIC:
        if problem := topic_name_problem(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return describe_topic(layers, image.config(resources.TOPIC, name), names)
    if resource_type == resources.BROKER:
        if not name:
            return describe_broker_default(layers, names)
        resources.check_own_id(node, name)
        return describe_broker(layers, names)
    if resource_type in (resources.BROKER_LOGGER, resources.CLIENT_METRICS, resources.GROUP):
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The name of the resource must not be empty")
        if resource_type == resources.BROKER_LOGGER:
            resources.check_own_id(node, name)
        if resource_type == resources.GROUP:
            return describe_group(layers, image.config(resources.GROUP, name), names)
        return []
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource_type}")


def _entry(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    response = messages.response(KEY)
    return response.DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.sensitive,
        synonyms=[
            response.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (row.synonyms if request.include_synonyms else ())
        ],
        config_type=row.type,
        documentation=row.documentation if request.include_documentation else None,
    )
