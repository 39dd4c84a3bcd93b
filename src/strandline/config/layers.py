"""The places a broker's value may come from, and which of them counts.

Always true: this broker's dynamic value wins over the cluster's dynamic default, that over the file, and that over the built-in
default. The numbers are those of DescribeConfigs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from strandline.config.broker import BROKER
from strandline.config.key import Key
from strandline.config.types import Value

EMPTY: Mapping[str, str] = MappingProxyType({})


class ConfigSource(enum.IntEnum):
    """Kafka's ConfigSource."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Layers(NamedTuple):
    """Texts by key name, one mapping for each place. All of them were checked before they came here."""

    static: Mapping[str, str] = EMPTY
    dynamic_default: Mapping[str, str] = EMPTY
    dynamic_broker: Mapping[str, str] = EMPTY

    def places(self) -> Iterator[tuple[ConfigSource, Mapping[str, str]]]:
        """The strongest first."""
        yield ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic_broker
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default
        yield ConfigSource.STATIC_BROKER_CONFIG, self.static

    def given(self, name: str) -> str | None:
        """The text that counts for a broker key, or None if only its default does."""
        for _, texts in self.places():
            if name in texts:
                return texts[name]
        return None

    def broker_value(self, name: str) -> Value:
        """The value that counts for a broker key."""
        key = BROKER[name]
        text = self.given(name)
        return key.default_value if text is None else key.parse(text)

    def topic_default(self, key: Key) -> Value:
        """What a topic key is when the topic says nothing: the first of its synonyms that the broker was given."""
        for name, factor in key.synonyms:
            text = self.given(name)
            if text is None:
                continue
            value = BROKER[name].parse(text)
            if isinstance(value, int) and factor != 1:
                return value * factor if value >= 0 else -1  # any negative number of hours means without end
            return value
        return key.default_value


DEFAULTS = Layers()
"""The layers of a broker without any configuration."""
