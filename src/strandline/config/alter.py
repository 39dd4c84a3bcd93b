"""Changing configuration while the cluster runs: what CreateTopics, AlterConfigs and IncrementalAlterConfigs may ask for.

Always true: a change is accepted only if the whole result is valid. Deleting a known key is always allowed, even one that
may not be set, because tools clean up after themselves that way.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.config.broker import BROKER, unknown
from strandline.config.errors import ConfigError
from strandline.config.group import GROUP, check_bounds
from strandline.config.key import Dynamic, Key, Where
from strandline.config.layers import DEFAULTS, EMPTY, Layers
from strandline.config.topic import TOPIC
from strandline.config.topic_config import effective
from strandline.config.types import Type, show

VALUE_LENGTH_MAX = 32767


class Op(enum.IntEnum):
    """Kafka's AlterConfigOp."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    op: Op
    value: str | None


def alter_topic(
    current: Mapping[str, str],
    alterations: Iterable[Alteration],
    layers: Layers = DEFAULTS,
) -> dict[str, str]:
    """The overrides of a topic after the alterations, or ConfigError."""
    altered = _apply(TOPIC, "topic", current, alterations)
    check_topic(altered, layers, accepted=current)
    return altered


def alter_broker(current: Mapping[str, str], alterations: Iterable[Alteration], *, one_broker: bool) -> dict[str, str]:
    """The dynamic configuration of one broker, or of the cluster's default, after the alterations; or ConfigError."""
    altered = _apply(BROKER, "broker", current, alterations)
    check_broker(altered, one_broker=one_broker, accepted=current)
    return altered


def alter_group(
    current: Mapping[str, str], alterations: Iterable[Alteration], layers: Layers = DEFAULTS
) -> dict[str, str]:
    """The overrides of a group after the alterations, or ConfigError."""
    altered = _apply(GROUP, "group", current, alterations)
    for name, text in altered.items():
        _accept(GROUP, "group", name, text, current)
    check_bounds(layers, {name: text for name, text in altered.items() if name in GROUP})
    return altered


def check_topic(
    overrides: Mapping[str, str | None],
    layers: Layers = DEFAULTS,
    accepted: Mapping[str, str] = EMPTY,
) -> None:
    """ConfigError unless a topic may have these overrides. `accepted` ones were checked before and may stay as they are."""
    texts: dict[str, str] = {}
    for name, text in overrides.items():
        texts[name] = _accept(TOPIC, "topic", name, text, accepted)
    values = effective(layers, texts)
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise ConfigError(f"min.compaction.lag.ms ({least}) must not be greater than max.compaction.lag.ms ({most})")


def check_broker(overrides: Mapping[str, str | None], *, one_broker: bool, accepted: Mapping[str, str] = EMPTY) -> None:
    """ConfigError unless these may be set on a running broker (`one_broker`) or as the default of all."""
    for name, text in overrides.items():
        _accept(BROKER, "broker", name, text, accepted)
        if accepted.get(name) == text:
            continue
        key = BROKER[name]
        if key.dynamic is Dynamic.READ_ONLY:
            raise ConfigError(f"Cannot update these configs dynamically: [{name}]")
        if key.dynamic is Dynamic.PER_BROKER and not one_broker:
            raise ConfigError(
                f"Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
            )


def warnings(kind: Where, overrides: Mapping[str, str | None]) -> list[str]:
    """What to say of those that are accepted and have no effect."""
    keys = _KEYS[kind]
    given = [(keys[name], text) for name, text in overrides.items() if name in keys and text is not None]
    return [warning for key, text in given if (warning := key.warning(text)) is not None]


_KEYS = {Where.TOPIC: TOPIC, Where.BROKER: BROKER, Where.GROUP: GROUP}


def _accept(keys: Mapping[str, Key], kind: str, name: str, text: str | None, accepted: Mapping[str, str]) -> str:
    if text is None:
        raise ConfigError(f"Null value not supported for {kind} configs: {name}")
    if accepted.get(name) == text:
        return text
    if name not in keys:
        raise unknown(name, keys, kind)
    if len(text.encode()) > VALUE_LENGTH_MAX:
        raise ConfigError(f"The value of {name} has more than {VALUE_LENGTH_MAX} bytes")
    keys[name].accept(text)
    return text


def _apply(
    keys: Mapping[str, Key], kind: str, current: Mapping[str, str], alterations: Iterable[Alteration]
) -> dict[str, str]:
    altered = dict(current)
    seen = set()
    for name, op, value in alterations:
        if name in seen:
            raise ConfigError(f"{name} is altered twice in one request")
        seen.add(name)
        if name not in keys and name not in current:
            raise unknown(name, keys, kind)
        if op is Op.DELETE:
            altered.pop(name, None)
            continue
        if value is None:
            raise ConfigError(f"Null value not supported for {kind} configs: {name}")
        if op is Op.SET:
            altered[name] = value
            continue
        key = keys.get(name)
        if key is None or key.type is not Type.LIST:
            raise ConfigError(f"Can't {op.name} to key {name} because its type is not LIST.")
        altered[name] = _edit_list(altered.get(name, show(key.default_value) or ""), op, value)
    return altered


def _edit_list(text: str, op: Op, value: str) -> str:
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in (part.strip() for part in value.split(",")):
        if op is Op.APPEND and entry not in entries:
            entries.append(entry)
        elif op is Op.SUBTRACT and entry in entries:
            entries.remove(entry)
    return ",".join(entries)
