"""Group keys: what a single group of the consumer protocol may have otherwise than its broker says.

Always true: each has a broker key that gives its default, and two that bound it; a value that was set under other bounds is kept
within those of today. Share and streams groups have keys of their own, which are not ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.config.errors import ConfigError
from strandline.config.key import CLUSTER_WIDE, MEDIUM, Key, Where, table
from strandline.config.layers import Layers
from strandline.config.types import AT_LEAST_0, AT_LEAST_1, INT, SECOND_MS, NumberRange, invalid

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def _key(name: str, default: int, check: NumberRange, doc: str) -> Key:
    synonyms = ((f"group.{name}", 1),)
    return Key(name, INT, default, check, MEDIUM, CLUSTER_WIDE, doc, where=Where.GROUP, synonyms=synonyms)


GROUP: dict[str, Key] = table(
    (
        _key(SESSION_TIMEOUT, 45 * SECOND_MS, AT_LEAST_1, "A member that was silent for this long leaves the group."),
        _key(HEARTBEAT_INTERVAL, 5 * SECOND_MS, AT_LEAST_1, "How often the members of the group send heartbeats."),
        _key(
            "consumer.assignment.interval.ms",
            SECOND_MS,
            AT_LEAST_0,
            "The least time between two assignments of the group.",
        ),
    )
)


def bounds(layers: Layers, name: str) -> tuple[int, int]:
    """The least and the most that a broker lets a group have."""
    kind, _, rest = name.partition(".")
    least, most = layers.broker_value(f"group.{kind}.min.{rest}"), layers.broker_value(f"group.{kind}.max.{rest}")
    assert isinstance(least, int)
    assert isinstance(most, int)
    return least, most


def group_values(layers: Layers, overrides: Mapping[str, str]) -> dict[str, int]:
    """The values that count for a group with these overrides."""
    values: dict[str, int] = {}
    for name, key in GROUP.items():
        value = layers.topic_default(key)
        if name in overrides:
            least, most = bounds(layers, name)
            given = key.parse(overrides[name])
            assert isinstance(given, int)
            value = min(max(given, least), most)
        assert isinstance(value, int)
        values[name] = value
    return values


def check_bounds(layers: Layers, overrides: Mapping[str, str]) -> None:
    """ConfigError unless a group may have these overrides, each of which is a known key with a value of its type."""
    for name, text in overrides.items():
        value = GROUP[name].parse(text)
        assert isinstance(value, int)
        least, most = bounds(layers, name)
        if not least <= value <= most:
            raise invalid(name, value, f"it must be between {least} and {most}, as the broker's bounds say")
    values = group_values(layers, overrides)
    if values[SESSION_TIMEOUT] <= values[HEARTBEAT_INTERVAL]:
        raise ConfigError(
            f"{SESSION_TIMEOUT} ({values[SESSION_TIMEOUT]}) must be greater than {HEARTBEAT_INTERVAL} "
            f"({values[HEARTBEAT_INTERVAL]})"
        )
