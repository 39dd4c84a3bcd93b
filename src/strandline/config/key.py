"""One configuration key, declared once.

Always true: a key is HONOURED (its meaning is kept), IGNORED (it only tunes threads, buffers or libraries of a JVM, or a part that
is turned off; setting it gives a warning) or REFUSED (setting it to anything but its default is an error that says why). There is
no fourth way.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from strandline.config.errors import ConfigError
from strandline.config.types import PASSWORD, Check, Type, Value, parse, show


class Treatment(enum.Enum):
    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


class Importance(enum.Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Dynamic(enum.Enum):
    """Whether a running broker takes a new value, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Where(enum.Enum):
    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"


HIGH, MEDIUM, LOW = Importance
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Dynamic


class _Required(enum.Enum):
    REQUIRED = "required"


REQUIRED = _Required.REQUIRED
"""The default of a key that must be given."""

Synonym = tuple[str, int]
"""A broker key that sets the default of a topic key, and what its value is multiplied with (hours to milliseconds)."""


class Key(NamedTuple):
    name: str
    type: Type
    default: Value | _Required
    check: Check | None
    importance: Importance
    dynamic: Dynamic
    doc: str
    treatment: Treatment = Treatment.HONOURED
    where: Where = Where.BROKER
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False
    """Known, and not listed by DescribeConfigs: internal keys of Kafka 4.3, and keys that only came after it."""

    @property
    def sensitive(self) -> bool:
        return self.type is PASSWORD

    @property
    def default_value(self) -> Value:
        """The default; None for a key that has none or must be given."""
        return None if self.default is REQUIRED else self.default

    def parse(self, text: str) -> Value:
        """The checked value, whatever the treatment. ConfigError in Kafka's words."""
        value = parse(self.name, self.type, text)
        if self.check is not None:
            self.check.check(self.name, value)
        return value

    def warning(self, text: str) -> str | None:
        """What to say of a value that is accepted without effect; None if it has its effect, or asks for nothing."""
        if self.treatment is not Treatment.IGNORED or self.parse(text) == self.default:
            return None
        return f"{self.name}={'[hidden]' if self.sensitive else text} has no effect: {self.doc}"

    def accept(self, text: str) -> Value:
        """The checked value of a key that may be set to it; ConfigError with the reason if it is refused."""
        value = self.parse(text)
        if self.treatment is Treatment.REFUSED and value != self.default:
            shown = "[hidden]" if self.sensitive else show(value)
            raise ConfigError(f"{self.name}={shown} is not supported: {self.doc} Remove it.")
        return value


def ignored(
    reason: str,
    keys: Iterable[tuple[str, Type, Value, Check | None, Importance]],
    dynamic: Mapping[str, Dynamic] = MappingProxyType({}),
) -> tuple[Key, ...]:
    """Broker keys accepted with a warning, for one reason. `dynamic` names those that Kafka lets change at run time: so may
    they here, and it still has no effect."""
    return tuple(Key(*row, dynamic.get(row[0], READ_ONLY), reason, Treatment.IGNORED) for row in keys)


def refused(
    reason: str, keys: Iterable[tuple[str, Type, Value, Check | None, Importance]], where: Where = Where.BROKER
) -> tuple[Key, ...]:
    """Keys refused for one reason. A refused key may still be spelled out with its default, which asks for nothing."""
    return tuple(Key(*row, READ_ONLY, reason, Treatment.REFUSED, where) for row in keys)


def table(*groups: Iterable[Key]) -> dict[str, Key]:
    """The keys by name; each name once."""
    keys: dict[str, Key] = {}
    for group in groups:
        for key in group:
            assert key.name not in keys, f"{key.name} is declared twice"
            keys[key.name] = key
    return keys
