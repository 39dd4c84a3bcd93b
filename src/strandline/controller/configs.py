"""Decisions about configuration: of topics, of single brokers, of all brokers, of groups.

Always true: only the difference is written; a change that would leave an invalid whole is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from strandline.config.alter import Alteration, Op, alter_broker, alter_group, alter_topic, warnings
from strandline.config.errors import ConfigError
from strandline.config.key import Where
from strandline.config.layers import Layers
from strandline.controller.topics import min_isr_changed
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, MetadataImage

GROUPS_MAX = 10_000


def alter(
    image: MetadataImage,
    resource_type: int,
    name: str,
    alterations: Sequence[Alteration],
    layers: Layers,
    groups_max: int = GROUPS_MAX,
) -> list[r.MetadataRecord]:
    """Set, delete, append to and subtract from the overrides of one resource. `groups_max`: the most groups that have any."""
    _check_resource(image, resource_type, name)
    current = image.config(resource_type, name)
    if resource_type == GROUP_RESOURCE and not current:
        _check_room_for_group(image, groups_max)
    try:
        if resource_type == TOPIC_RESOURCE:
            wanted = alter_topic(current, alterations, layers)
        elif resource_type == GROUP_RESOURCE:
            wanted = alter_group(current, alterations, layers)
        else:
            wanted = alter_broker(current, alterations, one_broker=bool(name))
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from None
    records = _difference(resource_type, name, current, wanted)
    return [*records, *min_isr_changed(image, records)]


def replace(
    image: MetadataImage,
    resource_type: int,
    name: str,
    values: Mapping[str, str | None],
    layers: Layers,
    groups_max: int = GROUPS_MAX,
) -> list[r.MetadataRecord]:
    """Make `values` the only overrides of one resource (the old AlterConfigs)."""
    current = image.config(resource_type, name)
    alterations = [Alteration(key, Op.SET, value) for key, value in values.items()]
    alterations += [Alteration(key, Op.DELETE, None) for key in current if key not in values]
    return alter(image, resource_type, name, alterations, layers, groups_max)


def without_effect(records: Iterable[r.MetadataRecord]) -> list[str]:
    """What to say of settings that these records store and that have no effect, one sentence for each."""
    return [
        f"{_KINDS[record.resource_type].value} {record.resource_name or 'default'}: {warning}"
        for record in records
        if isinstance(record, r.ConfigRecord) and record.resource_type in _KINDS
        for warning in warnings(_KINDS[record.resource_type], {record.name: record.value})
    ]


_KINDS = {TOPIC_RESOURCE: Where.TOPIC, BROKER_RESOURCE: Where.BROKER, GROUP_RESOURCE: Where.GROUP}


def _check_resource(image: MetadataImage, resource_type: int, name: str) -> None:
    if resource_type == TOPIC_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif resource_type == BROKER_RESOURCE:
        if name and name not in map(str, image.brokers):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no broker '{name}'.")
    elif resource_type == GROUP_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configuration of resource type {resource_type} can't be altered.")


def _check_room_for_group(image: MetadataImage, groups_max: int) -> None:
    """Groups need not exist to be configured, and nothing ever removes what was set for one: so many may be, and no more."""
    # Topics and brokers have to exist: only beyond that do the groups have to be counted.
    if len(image.configs) < groups_max:
        return
    if sum(resource_type == GROUP_RESOURCE for resource_type, _ in image.configs) >= groups_max:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{groups_max} groups have a configuration of their own already, which is the most "
            "(group.config.max.resources).",
        )


def _difference(
    resource_type: int, name: str, current: Mapping[str, str], wanted: Mapping[str, str]
) -> list[r.MetadataRecord]:
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if current.get(key) != value}
    changes |= {key: None for key in current if key not in wanted}
    return [
        r.ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in changes.items()
    ]
