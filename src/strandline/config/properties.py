"""Where configuration text comes from: a Kafka properties file, the environment, and overrides on the command line.

Always true: an override wins over the environment, and that over the file; every value remembers its place, so that an error can
name it. An unknown name in a file or an override is refused; the environment is shared with others, so there it is a warning.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.config.broker import BROKER, FOREIGN_PREFIX, did_you_mean, unknown
from strandline.config.errors import ConfigError
from strandline.config.key import Key, Treatment

ENVIRONMENT_PREFIX = "KAFKA_"
OTHER_ENVIRONMENT = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HOME",
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    }
)
"""Names that Kafka's own start scripts and images use for the JVM around the broker."""

_PER_LISTENER = r"listener\.name\.[^.]+\.(.+)"


class Property(NamedTuple):
    """The text of one value and its place: a file and line, an environment name, or an override."""

    text: str
    where: str


class Properties(NamedTuple):
    """Names and texts as given, each checked against the table; warnings for what has no effect."""

    entries: Mapping[str, Property]
    warnings: tuple[str, ...] = ()

    def texts(self) -> dict[str, str]:
        return {name: entry.text for name, entry in self.entries.items()}

    def where(self, name: str) -> str:
        """The place of a key that was given; nothing for a default."""
        return self.entries[name].where if name in self.entries else ""


def base_name(name: str) -> str:
    """The key behind a `listener.name.<listener>.` prefix; the name itself without one."""
    match = re.fullmatch(_PER_LISTENER, name)
    return match[1] if match else name


def find(name: str) -> Key | None:
    """The key that a name in a file stands for. Only the ssl.* keys may be given for one listener."""
    base = base_name(name)
    if base != name and not base.startswith("ssl."):
        return None
    return BROKER.get(base)


def environment_key(variable: str) -> str:
    """`KAFKA_NUM_PARTITIONS` is num.partitions; two underscores stand for one, three for a dash, as in Kafka's images."""
    dotted = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def read_file(text: str, source: str) -> tuple[dict[str, Property], list[str]]:
    """The properties in the text of a file, and warnings for names given twice (the last counts, as in Java)."""
    from javaproperties import KeyValue, parse  # slow to import, and needed once

    entries: dict[str, Property] = {}
    warnings = []
    line = 1
    try:
        for element in parse(io.StringIO(text)):
            if isinstance(element, KeyValue):
                where = f"{source}:{line}"
                if element.key in entries:
                    warnings.append(
                        f"{where}: {element.key} was already given at {entries[element.key].where}; this one counts"
                    )
                entries[element.key] = Property(element.value, where)
            line += element.source.count("\n")
    except ValueError as error:
        raise ConfigError(f"cannot be read as properties: {error}", f"{source}:{line}") from None
    return entries, warnings


def read_environment(environment: Mapping[str, str]) -> tuple[dict[str, Property], list[str]]:
    """The properties in Kafka's environment names, and warnings for names that look like one and are none."""
    entries: dict[str, Property] = {}
    warnings = []
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in OTHER_ENVIRONMENT:
            continue
        name = environment_key(variable)
        if find(name) is None:
            warnings.append(
                f"environment {variable}: {name} is not a broker config name{did_you_mean(name, BROKER)}; not used"
            )
        else:
            entries[name] = Property(text, f"environment {variable}")
    return entries, warnings


def read_overrides(overrides: Iterable[str]) -> dict[str, Property]:
    """The properties of `--override key=value`."""
    entries: dict[str, Property] = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        where = f"--override {name.strip()}"
        if not equals or not name.strip():
            raise ConfigError("write it as key=value", where)
        entries[name.strip()] = Property(text.strip(), where)
    return entries


def load(
    path: str | None = None, environment: Mapping[str, str] | None = None, overrides: Iterable[str] = ()
) -> Properties:
    """All that was given, checked name by name and value by value."""
    entries: dict[str, Property] = {}
    warnings: list[str] = []
    if path is not None:
        try:
            with open(path, encoding="iso-8859-1") as file:  # Java's encoding of properties
                text = file.read()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", path) from None
        found, notes = read_file(text, path)
        entries.update(found)
        warnings += notes
    if environment:
        found, notes = read_environment(environment)
        entries.update(found)
        warnings += notes
    entries.update(read_overrides(overrides))
    return check(entries, warnings)


def of(texts: Mapping[str, str], where: str = "") -> Properties:
    """Properties from a mapping, checked like any other."""
    return check({name: Property(text, where) for name, text in texts.items()}, [])


def check(entries: Mapping[str, Property], warnings: Iterable[str]) -> Properties:
    """Refuse what is unknown, malformed or not honoured; warn of what is only tolerated."""
    accepted: dict[str, Property] = {}
    notes = list(warnings)
    for name, entry in entries.items():
        key = find(name)
        if key is None:
            if name.startswith(FOREIGN_PREFIX):
                notes.append(_note(entry, f"{name} has no meaning to Apache Kafka and none here; not used"))
                continue
            if base_name(name) != name:
                raise ConfigError(f"{name}: only ssl.* keys can be set for one listener; remove it", entry.where)
            raise unknown(name, BROKER, "broker").at(entry.where)
        try:
            key.accept(entry.text)
        except ConfigError as error:
            raise error.at(entry.where) from None
        if key.treatment is Treatment.IGNORED:
            notes.append(_note(entry, f"{name} has no effect: {key.doc}"))
        accepted[name] = entry
    return Properties(accepted, tuple(notes))


def _note(entry: Property, sentence: str) -> str:
    return f"{entry.where}: {sentence}" if entry.where else sentence
