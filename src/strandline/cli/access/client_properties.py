"""Kafka's client properties (`acks=all`, `security.protocol=SSL`) as settings of our client.

Always true: an unsupported property is refused with its name and place, never silently ignored; one that only tunes the JVM of
Kafka's client is accepted with a warning.
"""

from __future__ import annotations

import dataclasses
import re
import ssl
from collections.abc import Callable, Collection, Container, Mapping
from typing import NamedTuple, NoReturn, TypeVar

import click

from strandline.cli.access.client_tls import KEYS as TLS_KEYS
from strandline.cli.access.client_tls import client_context
from strandline.cli.access.options import Access
from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.output import note
from strandline.client.blocking import ClientConfig, ConsumerConfig, ProducerConfig
from strandline.config.errors import ConfigError
from strandline.records.compression import CompressionType

C = TypeVar("C", ClientConfig, ProducerConfig, ConsumerConfig)

API_TIMEOUT_MS = 15_000
"""Less than Kafka's minute: a user is waiting at a terminal."""
CLIENT_ID = "strandline-cli"
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
PROTOCOLS = ("PLAINTEXT", "SSL")

CLIENT_KEYS = {
    "client.id": "client_id",
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "default_api_timeout_ms",
    "socket.connection.setup.timeout.ms": "connection_setup_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
"""Properties of every client, and the fields of ClientConfig that they set."""
CODEC_LEVELS = {
    "compression.gzip.level": (CompressionType.GZIP, (-1, *range(1, 10))),
    "compression.lz4.level": (CompressionType.LZ4, range(1, 18)),
    "compression.zstd.level": (CompressionType.ZSTD, range(-131072, 23)),
}
"""The compression level of each codec, and the allowed values."""
PRODUCER_KEYS = {
    field.name.replace("_", "."): field.name
    for field in dataclasses.fields(ProducerConfig)
    if field.name != "compression_level"
}
CONSUMER_KEYS = {field.name.replace("_", "."): field.name for field in dataclasses.fields(ConsumerConfig)}
CLASSES = {
    f"{part}.{what}": tuple(f"org.apache.kafka.common.serialization.{kind}{what.capitalize()}" for kind in kinds)
    for what, kinds in (("serializer", ("ByteArray", "String")), ("deserializer", ("ByteArray", "String")))
    for part in ("key", "value")
}
"""Java classes that can be named because they do what is done here: keys and values are bytes, and text is UTF-8."""
ASSIGNORS = {
    f"org.apache.kafka.clients.consumer.{java}Assignor": name
    for java, name in (
        ("Range", "range"),
        ("RoundRobin", "roundrobin"),
        ("Sticky", "sticky"),
        ("CooperativeSticky", "cooperative-sticky"),
    )
}
"""Our names of the assignors that Kafka names by their Java class."""
JVM_KEYS = frozenset(
    {
        "auto.include.jmx.reporter",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)


class ClientProperty(NamedTuple):
    """A client property as it was given: its text, and its source, which is a file and line or a flag."""

    text: str
    where: str

    def refuse(self, sentence: str) -> NoReturn:
        """Raise: a wrong value of a flag is a usage error, one in a file is not."""
        if self.where.startswith("-"):
            raise click.UsageError(f"{self.where}: {sentence}")
        raise CommandRefused(f"{self.where}: {sentence}")


ClientProperties = Mapping[str, ClientProperty]


class ConnectionSettings(NamedTuple):
    """What a client needs to connect: the servers, its configuration, and TLS if it is used."""

    bootstrap_server: str
    config: ClientConfig
    tls: ssl.SSLContext | None


def from_flag(pairs: Mapping[str, str], flag: str) -> dict[str, ClientProperty]:
    return {name: ClientProperty(text, flag) for name, text in pairs.items()}


def from_file(path: str | None) -> dict[str, ClientProperty]:
    """The properties in a file; none without a file."""
    if path is None:
        return {}
    from strandline.config.properties import read_file

    with open(path, encoding="iso-8859-1") as file:  # Java's encoding of properties
        entries, warnings = read_file(file.read(), path)
    for warning in warnings:
        note(warning)
    return {name: ClientProperty(entry.text, entry.where) for name, entry in entries.items()}


def connection_settings(access: Access) -> ConnectionSettings:
    """For admin commands: the properties of the file; those of producers and consumers are refused."""
    return _reach(access, _known(from_file(access.command_config), {}, "client"))


def for_producer(access: Access, settings: ClientProperties) -> tuple[ConnectionSettings, ProducerConfig]:
    """For a producer; the properties of `access.command_config` are in `settings` already."""
    given = _known(settings, {**PRODUCER_KEYS, **CODEC_LEVELS}, "producer")
    return _reach(access, given), producer_config(given)


def for_consumer(access: Access, settings: ClientProperties) -> tuple[ConnectionSettings, ConsumerConfig]:
    """For a consumer; the properties of `access.command_config` are in `settings` already."""
    given = _known(settings, CONSUMER_KEYS, "consumer")
    # If retention has deleted the next record, reading goes on with the oldest that is left, and skips none.
    return _reach(access, given), _build(ConsumerConfig, given, CONSUMER_KEYS, auto_offset_reset="earliest")


def producer_config(settings: ClientProperties) -> ProducerConfig:
    config = _build(ProducerConfig, settings, PRODUCER_KEYS)
    for name, (codec, levels) in CODEC_LEVELS.items():
        if name in settings:
            try:
                level = _integer(settings[name].text, levels)
            except ValueError:
                settings[name].refuse(f"{name}={settings[name].text} is not a value for it")
            # As in Kafka, the level of a codec that is not in use is accepted and has no effect.
            if config.compression_type is codec:
                config = dataclasses.replace(config, compression_level=level)
    return config


def _known(settings: ClientProperties, own: Collection[str], what: str) -> dict[str, ClientProperty]:
    """The supported properties among these; the first unsupported one is refused."""
    honoured = {"bootstrap.servers", "security.protocol", *CLIENT_KEYS, *TLS_KEYS, *own}
    found: dict[str, ClientProperty] = {}
    for name, setting in settings.items():
        if name in honoured:
            found[name] = setting
        elif name in JVM_KEYS:
            note(f"{setting.where}: {name} has no effect: it tunes the JVM of Kafka's own client")
        elif name in CLASSES and name.endswith(f".{'serializer' if what == 'producer' else 'deserializer'}"):
            if setting.text.strip() not in CLASSES[name]:
                setting.refuse(f"{name}: the Java class {setting.text.strip()} cannot be loaded here; leave it out")
        elif name.startswith("sasl."):
            setting.refuse(
                f"{name}: SASL is not supported yet; clients authenticate with a certificate (ssl.keystore.*)"
            )
        elif name in ("ssl.keystore.password", "ssl.truststore.password"):
            setting.refuse(
                f"{name} belongs to Java's stores; a PEM file has none, but its key may have ssl.key.password"
            )
        else:
            _refuse_unknown(name, setting, honoured, what)
    return found


def _refuse_unknown(name: str, setting: ClientProperty, honoured: Collection[str], what: str) -> NoReturn:
    from strandline.config.broker import did_you_mean

    hint = did_you_mean(name, dict.fromkeys(honoured))
    known = "" if hint else f"; these are: {', '.join(sorted(honoured))}"
    setting.refuse(f"{name} is not a supported {what} property{hint}{known}")


def _reach(access: Access, settings: ClientProperties) -> ConnectionSettings:
    server = access.bootstrap_server
    if server is None and "bootstrap.servers" in settings:
        server = settings["bootstrap.servers"].text
    server = access.fallback if server is None else server
    if server is None:
        raise click.UsageError("Missing option '--bootstrap-server', and bootstrap.servers is not set either.")
    config = _build(ClientConfig, settings, CLIENT_KEYS, client_id=CLIENT_ID, default_api_timeout_ms=API_TIMEOUT_MS)
    return ConnectionSettings(server, config, _tls(settings))


def _tls(settings: ClientProperties) -> ssl.SSLContext | None:
    """The context that security.protocol asks for; None for PLAINTEXT."""
    given = {name: settings[name] for name in TLS_KEYS if name in settings}
    protocol = settings.get("security.protocol", ClientProperty("PLAINTEXT", ""))
    name = protocol.text.strip().upper()
    if name.startswith("SASL_"):
        protocol.refuse(
            f"security.protocol={name}: SASL is not supported yet; use SSL, with a client certificate if the broker requires one"
        )
    if name not in PROTOCOLS:
        protocol.refuse(f"security.protocol={protocol.text} is none of {', '.join(PROTOCOLS)}")
    if name == "PLAINTEXT":
        for key, setting in given.items():
            setting.refuse(f"{key} has no effect without security.protocol=SSL; set that, or remove it")
        return None
    try:
        return client_context({key: setting.text for key, setting in given.items()})
    except ConfigError as error:
        at = next((setting for key, setting in given.items() if key in str(error)), protocol)
        at.refuse(str(error))


def _build(cls: type[C], settings: ClientProperties, keys: Mapping[str, str], **defaults: object) -> C:
    make: Callable[..., C] = cls  # the values of each field are parsed by its type
    kinds = {field.name: str(field.type) for field in dataclasses.fields(cls)}
    values = defaults
    for name, attribute in keys.items():
        if name in settings:
            text = settings[name].text.strip()
            try:
                values[attribute] = _parse(attribute, kinds[attribute], text)
            except (ValueError, KeyError):
                settings[name].refuse(f"{name}={text} is not a value for it")
    try:
        return make(**values)
    except ValueError as error:
        sentence = str(error)
        for name, attribute in keys.items():
            sentence = sentence.replace(attribute, name)
        at = next((settings[name] for name in keys if name in settings and name in sentence), None)
        if at is None:
            raise click.UsageError(sentence) from None
        at.refuse(sentence)


def _parse(attribute: str, kind: str, text: str) -> object:
    if attribute == "acks":
        return ACKS[text]
    if attribute == "compression_type":
        return CompressionType[text.upper()]
    if attribute == "partition_assignment_strategy":
        return tuple(ASSIGNORS.get(name.strip(), name.strip()) for name in text.split(","))
    if kind.startswith("bool"):
        return {"true": True, "false": False}[text.lower()]
    if kind.startswith("int") or kind == "float":  # Kafka has no fractions; floats are for callers in Python
        return _integer(text)
    return text


def _integer(text: str, allowed: Container[int] = range(2**31)) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text.strip()) or int(text) not in allowed:
        raise ValueError(text)
    return int(text)
