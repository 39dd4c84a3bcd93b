"""The types a configuration value may have: from text to value and back, and the bounds a value must keep.

Always true: `parse` accepts what Kafka accepts and refuses in Kafka's words; `show` prints a value as DescribeConfigs does, and
parsing that text gives the same value again.
"""

from __future__ import annotations

import enum
import math
import re
from typing import Any, NamedTuple, Protocol

from strandline.config.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...] | None
Values = dict[str, Any]
"""Values by the name of a key or of an attribute, which says what type each has."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
KIB, MIB, GIB = 1024, 1024**2, 1024**3
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000


class Type(enum.IntEnum):
    """Kafka's types, numbered as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = Type

_BITS = {INT: 31, SHORT: 15, LONG: 63}
_INTEGER = r"[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def invalid(name: str, value: object, why: str) -> ConfigError:
    """Kafka's sentence for a value that a key cannot have."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {why}")


def parse(name: str, type_: Type, text: str) -> Value:
    """The value that `text` spells, or ConfigError."""
    text = text.strip()
    if type_ is BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if type_ is LIST:
        return tuple(re.split(r"\s*,\s*", text)) if text else ()
    if type_ in _BITS:
        bound = 1 << _BITS[type_]
        # The digits are counted first: a number of a million digits must not cost its conversion.
        if not re.fullmatch(_INTEGER, text) or len(text) > 40 or not -bound <= int(text) < bound:
            raise invalid(name, text[:80], f"Not a number of type {type_.name}")
        return int(text)
    if type_ is DOUBLE:
        if not re.fullmatch(_DECIMAL, text):
            raise invalid(name, text[:80], "Not a number of type DOUBLE")
        return float(text)
    return text


def show(value: Value) -> str | None:
    """The text of a value as Kafka prints it; None for no value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _show_double(value)
    return str(value)


def _show_double(value: float) -> str:
    """Java writes 0.5 and 1.0E7 where Python writes 0.5 and 10000000.0."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e7:
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, repr(value))
    digits, _, exponent = f"{value:.16e}".partition("e")
    for precision in range(1, 17):
        if float(f"{value:.{precision}e}") == value:
            digits, _, exponent = f"{value:.{precision}e}".partition("e")
            break
    return f"{digits}E{int(exponent)}"


class Check(Protocol):
    """What a value must keep beyond its type. `str()` of it goes into the reference."""

    def check(self, name: str, value: Value) -> None: ...


class NumberRange(NamedTuple):
    """A number within bounds, both included; None leaves a side open. `also` is one more value that passes."""

    minimum: int | None
    maximum: int | None = None
    also: int | None = None

    def check(self, name: str, value: Value) -> None:
        assert isinstance(value, int | float)
        if value == self.also:
            return
        if self.minimum is not None and value < self.minimum:
            raise invalid(name, show(value), f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise invalid(name, show(value), f"Value must be no more than {self.maximum}")

    def __str__(self) -> str:
        bounds = f"at least {self.minimum}" if self.maximum is None else f"{self.minimum} to {self.maximum}"
        return bounds if self.also is None else f"{bounds}, or {self.also}"


class OneOf(NamedTuple):
    """A string out of a few."""

    values: tuple[str, ...]
    ignore_case: bool = False

    def check(self, name: str, value: Value) -> None:
        assert isinstance(value, str)
        if value in self.values or (self.ignore_case and value.lower() in {v.lower() for v in self.values}):
            return
        how = " (case insensitive)" if self.ignore_case else ""
        raise invalid(name, value, f"String must be one of{how}: {', '.join(self.values)}")

    def __str__(self) -> str:
        return ", ".join(value or "(empty)" for value in self.values)


class ListOf(NamedTuple):
    """A list without empty or repeated entries, and of the given ones if any are given."""

    values: tuple[str, ...] = ()
    empty_allowed: bool = True

    def check(self, name: str, value: Value) -> None:
        assert isinstance(value, tuple)
        if not value and not self.empty_allowed:
            raise ConfigError(f"Configuration '{name}' must not be empty.")
        if len(set(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for entry in value:
            if not entry:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.values and entry not in self.values:
                raise invalid(name, entry, f"String must be one of: {', '.join(self.values)}")

    def __str__(self) -> str:
        return f"any of {', '.join(self.values)}" if self.values else "a list without repetition"


class ThrottledReplicas:
    """A list of partition:broker, or a star for every replica."""

    def check(self, name: str, value: Value) -> None:
        assert isinstance(value, tuple)
        if "".join(value) != "*" and not all(re.fullmatch(r"([0-9]+:[0-9]+)?", entry) for entry in value):
            raise invalid(
                name,
                show(value),
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )

    def __str__(self) -> str:
        return "partition:broker,..., or *"


AT_LEAST_0 = NumberRange(0)
AT_LEAST_1 = NumberRange(1)
