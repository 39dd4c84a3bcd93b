"""DescribeClientQuotas (48), versions 0-1: the quotas of users, client ids and IP addresses that match a filter.

v1 is flexible. A component asks for one name, for the default, or for any name of its type; a strict filter wants no other types
beside. Filters that make no sense are INVALID_REQUEST, types that do not exist UNSUPPORTED_VERSION, in Kafka's words.
None can be set here (see AlterClientQuotas), so there are only those that a cluster of Apache Kafka brought along, which are kept
and not enforced.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import ClientQuotaRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

KEY: Final = 48
VERSIONS = range(2)

USER, CLIENT_ID, IP = ENTITY_TYPES = ("user", "client-id", "ip")
EXACT, DEFAULT, ANY = range(3)

Entity = tuple[tuple[str, str | None], ...]
"""Types and names, sorted by type; the default has no name."""


class EntityPart(Protocol):
    """As requests and records have it."""

    @property
    def entity_type(self) -> str: ...
    @property
    def entity_name(self) -> str | None: ...


def handle(request: DescribeClientQuotasRequest, ctx: RequestContext) -> MaybePending[DescribeClientQuotasResponse]:
    try:
        check_filter(request.components)
    except KafkaError as error:
        return messages.response(KEY)(error_code=error.code, error_message=error.message, entries=None)
    return answer(_describe(request, ctx), request, ctx)


def _describe(request: DescribeClientQuotasRequest, ctx: RequestContext) -> Work[DescribeClientQuotasResponse]:
    response, entries = messages.response(KEY), []
    for entity, values in quotas(ctx.node.metadata.image()).items():
        if _matches(dict(entity), request.components, strict=request.strict):
            entries.append(
                response.EntryData(
                    entity=[response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    values=[response.ValueData(key=key, value=value) for key, value in values.items()],
                )
            )
        yield 0
    return response(entries=entries)


def quotas(image: MetadataImage) -> dict[Entity, dict[str, float]]:
    """What the metadata keeps."""
    kept: dict[Entity, dict[str, float]] = {}
    for record in image.others.values():
        if isinstance(record, ClientQuotaRecord):
            kept.setdefault(entity_of(record.entity), {})[record.key] = record.value
    return kept


def entity_of(parts: Iterable[EntityPart]) -> Entity:
    return tuple(sorted(((part.entity_type, part.entity_name) for part in parts), key=itemgetter(0)))


def check_filter(components: Iterable[DescribeClientQuotasRequest.ComponentData]) -> None:
    """KafkaError unless the components make a filter. The first that is wrong is the last that is looked at: no more than one of
    each type can be right."""
    kinds: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in kinds:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind[:80]}")
        _check_match(component.match_type, component.match)
        kinds.add(kind)
    if IP in kinds and len(kinds) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )


def _check_match(match_type: int, match: str | None) -> None:
    names = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}
    if match_type not in names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")
    if match_type == EXACT and match is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Request specified {names[match_type]}, but set match string to null."
        )
    if match_type != EXACT and match is not None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Request specified {names[match_type]}, but also specified a match string."
        )


def _matches(
    entity: dict[str, str | None], components: Sequence[DescribeClientQuotasRequest.ComponentData], *, strict: bool
) -> bool:
    if strict and len(entity) != len(components):
        return False
    return all(
        component.entity_type in entity
        and (component.match_type == ANY or entity[component.entity_type] == component.match)
        for component in components
    )
