"""Rows for DescribeConfigs: what a key is set to, where that comes from, and what else could have set it.

Always true: the value of a sensitive key is never in a row. The rows are those of Kafka, which tools expect: a key that is
refused shows the default that it is fixed at, on a broker as read-only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from strandline.config.broker import BROKER, SYNONYMS
from strandline.config.group import GROUP, group_values
from strandline.config.key import Dynamic, Key
from strandline.config.layers import ConfigSource, Layers
from strandline.config.topic import TOPIC
from strandline.config.types import Type, Value, show


class SynonymRow(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigRow(NamedTuple):
    """One configuration entry, in the terms of the protocol. `synonyms` begins with the one that counts."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    sensitive: bool
    synonyms: tuple[SynonymRow, ...]
    type: Type
    documentation: str

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


def describe_topic(
    layers: Layers, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigRow]:
    """All settings of one topic, or the named ones."""
    rows = []
    for key in _wanted(TOPIC.values(), names):
        names_behind = [name for name, _ in key.synonyms]
        synonyms = _broker_synonyms(layers, names_behind, names_behind[0]) if names_behind else ()
        value = layers.topic_default(key)
        if key.name in overrides:
            value = key.parse(overrides[key.name])
            synonyms = (SynonymRow(key.name, show(value), ConfigSource.TOPIC_CONFIG), *synonyms)
        rows.append(_row(key, value, synonyms, read_only=False))
    return rows


def describe_group(
    layers: Layers, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigRow]:
    """All settings of one group, or the named ones."""
    values, rows = group_values(layers, overrides), []
    for key in _wanted(GROUP.values(), names):
        names_behind = [name for name, _ in key.synonyms]
        synonyms = _broker_synonyms(layers, names_behind, names_behind[0])
        if key.name in overrides:
            synonyms = (SynonymRow(key.name, show(values[key.name]), ConfigSource.GROUP_CONFIG), *synonyms)
        rows.append(_row(key, values[key.name], synonyms, read_only=False))
    return rows


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[ConfigRow]:
    """All settings of this broker, or the named ones."""
    rows = []
    for key in _wanted(BROKER.values(), names):
        group = next((group for group in SYNONYMS if key.name in group), (key.name,))
        if key.name == "log.flush.interval.ms":
            group = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
        synonyms = _broker_synonyms(layers, group, key.name)
        rows.append(_row(key, layers.broker_value(key.name), synonyms, key.dynamic is Dynamic.READ_ONLY))
    return rows


def describe_broker_default(layers: Layers, names: Collection[str] | None = None) -> list[ConfigRow]:
    """The dynamic settings that hold for every broker: only those that were set."""
    rows = []
    for key in _wanted(BROKER.values(), names):
        if key.name in layers.dynamic_default:
            value = key.parse(layers.dynamic_default[key.name])
            shown = None if key.sensitive else show(value)
            synonyms = (SynonymRow(key.name, shown, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)
            rows.append(_row(key, value, synonyms, key.dynamic is Dynamic.READ_ONLY))
    return rows


def _wanted(keys: Iterable[Key], names: Collection[str] | None) -> Iterable[Key]:
    for key in sorted(keys, key=lambda key: key.name):
        if key.internal:
            continue
        if not names or key.name in names:
            yield key


def _broker_synonyms(layers: Layers, names: Sequence[str], first: str) -> tuple[SynonymRow, ...]:
    """Every place that gives one of these broker keys a value, the strongest first; as in Kafka, none before the key `first`.

    So `retention.ms` that comes from log.retention.hours has no synonyms and counts as a default, there and here.
    """
    rows: list[SynonymRow] = []
    for source, texts in layers.places():
        rows += [SynonymRow(n, None if BROKER[n].sensitive else texts[n], source) for n in names if n in texts]
    for name in names:
        key = BROKER[name]
        if key.default_value is not None:
            rows.append(
                SynonymRow(name, None if key.sensitive else show(key.default_value), ConfigSource.DEFAULT_CONFIG)
            )
    begin = next((index for index, row in enumerate(rows) if row.name == first), len(rows))
    return tuple(rows[begin:])


def _row(key: Key, value: Value, synonyms: tuple[SynonymRow, ...], read_only: bool) -> ConfigRow:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    shown = None if key.sensitive else show(value)
    return ConfigRow(key.name, shown, read_only, source, key.sensitive, synonyms, key.type, key.doc)
