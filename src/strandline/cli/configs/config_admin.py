"""What `configs` and `kafka-configs` share: reading and changing the configuration of one topic, broker or group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.cli.access.connection import value_of
from strandline.cli.terminal.output import note
from strandline.client.blocking import Admin
from strandline.client.flow.descriptions import ConfigEntry, ConfigResource, ResourceType
from strandline.config.alter import Alteration, Op, warnings
from strandline.config.key import Where

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, DYNAMIC_GROUP = 1, 2, 3, 8
WHERE = {ResourceType.TOPIC: Where.TOPIC, ResourceType.BROKER: Where.BROKER, ResourceType.GROUP: Where.GROUP}
KINDS = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER, "groups": ResourceType.GROUP}


def resource(kind: str, name: str) -> ConfigResource:
    """The resource; a broker without a name is the cluster-wide default."""
    return ConfigResource(KINDS[kind], name)


def own_source(one: ConfigResource) -> int:
    """The source of values that were set on this resource itself."""
    if one.type is ResourceType.TOPIC:
        return DYNAMIC_TOPIC
    if one.type is ResourceType.GROUP:
        return DYNAMIC_GROUP
    return DYNAMIC_BROKER if one.name else DYNAMIC_DEFAULT_BROKER


def read(admin: Admin, one: ConfigResource, *, own_only: bool) -> list[ConfigEntry]:
    """Its configuration, sorted by name and with synonyms: only what was set on this resource itself, or every value in effect."""
    entries = value_of((admin.describe_configs([one], include_synonyms=True))[one])
    return sorted(entry for entry in entries if not own_only or entry.source == own_source(one))


def change(admin: Admin, one: ConfigResource, to_set: Mapping[str, str], to_delete: Sequence[str]) -> None:
    alterations = [Alteration(name, Op.DELETE, None) for name in to_delete]
    alterations += [Alteration(name, Op.SET, value) for name, value in to_set.items()]
    value_of((admin.alter_configs({one: alterations}))[one])
    note_without_effect(WHERE[one.type], to_set)


def note_without_effect(where: Where, configs: Mapping[str, str | None]) -> None:
    """Warn of settings that were stored and have no effect."""
    for warning in warnings(where, configs):
        note(f"warning: {warning}")
