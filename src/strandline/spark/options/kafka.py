"""The `kafka.*` options: settings of Kafka's clients under Kafka's names.

Always true: a setting is meant (it reaches our client), harmless (tuning of the Java client: let through with a warning), or
refused by its name. None is dropped silently.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from strandline.client.config import ACKS_ALL, ClientConfig, ConsumerConfig, ProducerConfig
from strandline.client.core.addresses import parse_addresses, show
from strandline.client.core.backoff import RECONNECT, RETRY, Backoff
from strandline.records.compression import CompressionType
from strandline.spark.errors import OptionError
from strandline.spark.options import values
from strandline.spark.options.kafka_names import (
    BACKOFFS,
    CLIENT,
    CONSUMER,
    FORBIDDEN,
    FORBIDDEN_PREFIXES,
    HARMLESS,
    KNOWN,
    PRODUCER,
    PROTOCOL,
    REQUIRED,
    TLS,
)
from strandline.spark.options.tls import TlsSettings

FETCH_BYTES: Final = 8 << 20
"""fetch.max.bytes and max.partition.fetch.bytes unless given: a task reads one partition, so a fetch brings much of it."""
BATCH_SIZE: Final = 512 << 10
"""batch.size unless given: rows are there in plenty, and half of max.message.bytes leaves room for one large record."""
MAX_REQUEST_SIZE: Final = 8 << 20
"""max.request.size unless given: a request carries the batches of many partitions."""

Value = str | int | bool | CompressionType
Arguments: TypeAlias = dict[str, Any]
"""Keyword arguments, each of the type of its parameter."""
"""Of a setting, read from its text."""
LEVELS: Final = {"gzip level": (-1, 9), "lz4 level": (1, 17), "zstd level": (-131_072, 22)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How to reach the brokers; small and picklable, and equal for equal settings, so that it can be a cache's key."""

    bootstrap_servers: tuple[str, ...]
    config: ClientConfig
    tls: TlsSettings | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    cluster: ClusterOptions
    consumer: ConsumerConfig
    producer: ProducerConfig
    warnings: tuple[str, ...] = ()


def kafka_settings(options: Mapping[str, str], *, writing: bool) -> KafkaSettings:
    """`options`: without the `kafka.` in front. A setting of the other side's client (acks on a source) is harmless."""
    mine, others = (PRODUCER, CONSUMER) if writing else (CONSUMER, PRODUCER)
    if not options.get(REQUIRED, "").strip():
        raise OptionError("option 'kafka.bootstrap.servers' is missing; give at least one broker as host:port")
    warnings: list[str] = []
    given: dict[str, Value] = {}
    for name, text in sorted(options.items()):
        if name in FORBIDDEN:
            raise OptionError(f"option 'kafka.{name}' is not supported: {FORBIDDEN[name]}")
        for prefix, reason in FORBIDDEN_PREFIXES.items():
            if name.startswith(prefix):
                raise OptionError(f"option 'kafka.{name}' is not supported: {reason}")
        kind = CLIENT.get(name) or mine.get(name)
        if kind is not None:
            given[name] = _value(f"kafka.{name}", text, kind)
        elif name in HARMLESS or name in others:
            why = HARMLESS.get(name) or f"it is a setting of the {'source' if writing else 'sink'}"
            warnings.append(f"option 'kafka.{name}' has no effect here: {why}")
        elif name not in KNOWN:
            raise OptionError(f"option 'kafka.{name}' is unknown{_near(name)}")
    client, consumer, producer = (_of(table, given) for table in (CLIENT, CONSUMER, PRODUCER))
    shared = {name: client[name] for name in ("request_timeout_ms",) if name in client}
    consumer = shared | {"fetch_max_bytes": FETCH_BYTES, "max_partition_fetch_bytes": FETCH_BYTES} | consumer
    producer = shared | {"batch_size": BATCH_SIZE, "max_request_size": MAX_REQUEST_SIZE, "linger_ms": 0.0} | producer
    level = producer.pop("levels", {}).get(str(producer.get("compression_type", CompressionType.NONE)))
    cluster = ClusterOptions(
        bootstrap_servers=_bootstrap(options[REQUIRED]),
        config=ClientConfig(**client | _backoffs(given)),
        tls=_tls(options),
    )
    try:
        return KafkaSettings(
            cluster=cluster,
            consumer=ConsumerConfig(group_id=None, enable_auto_commit=False, auto_offset_reset="none", **consumer),
            producer=ProducerConfig(compression_level=level, **producer),
            warnings=tuple(warnings),
        )
    except ValueError as error:  # our client's words for two settings that contradict each other
        raise OptionError(f"options 'kafka.*' contradict each other: {error}".replace("_", ".")) from None


def _of(table: Mapping[str, str], given: Mapping[str, Value]) -> Arguments:
    """Keyword arguments of our configuration: Kafka's names with '_' for '.'."""
    arguments: Arguments = {}
    for name in table.keys() & given.keys() - BACKOFFS:
        if name.startswith("compression.") and name.endswith(".level"):
            arguments.setdefault("levels", {})[name.split(".")[1]] = given[name]
        else:
            arguments[name.removeprefix("socket.").replace(".", "_")] = given[name]
    return arguments


def _backoffs(given: Mapping[str, Value]) -> dict[str, Backoff]:
    found = {}
    for what, default in (("retry", RETRY), ("reconnect", RECONNECT)):
        initial = given.get(f"{what}.backoff.ms", default.initial_ms)
        longest = given.get(f"{what}.backoff.max.ms", default.max_ms)
        assert isinstance(initial, int)
        assert isinstance(longest, int)
        found[f"{what}_backoff"] = Backoff(initial, max(initial, longest))
    return found


def _value(name: str, text: str, kind: str) -> Value:
    match kind:
        case "text":
            return text.strip()
        case "yes":
            return values.yes(name, text)
        case "acks":
            return {"all": ACKS_ALL, "-1": ACKS_ALL, "0": 0, "1": 1}[values.one_of(name, text, "all", "-1", "0", "1")]
        case "isolation":
            return values.one_of(name, text, "read_uncommitted", "read_committed")
        case "codec":
            return CompressionType.parse(values.one_of(name, text, *(str(codec) for codec in CompressionType)))
        case "gzip level" | "lz4 level" | "zstd level":
            return values.whole(name, text, *LEVELS[kind])
        case "ms":
            return values.whole(name, text, 0, values.INT_MAX)
    assert kind == "count"
    return values.whole(name, text, 1, values.INT_MAX)


def _bootstrap(text: str) -> tuple[str, ...]:
    try:
        return tuple(show(address) for address in parse_addresses(text))
    except ValueError as error:
        raise OptionError(f"option 'kafka.bootstrap.servers': {error}; write host:port with commas between") from None


def _tls(options: Mapping[str, str]) -> TlsSettings | None:
    protocol = options.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol.startswith("SASL"):
        raise OptionError(
            f"option 'kafka.security.protocol' is PLAINTEXT or SSL; {protocol} is not supported by this connector"
        )
    if values.one_of("kafka.security.protocol", protocol, "PLAINTEXT", "SSL") == "PLAINTEXT":
        for name in sorted(TLS & options.keys()):
            raise OptionError(f"option 'kafka.{name}' needs 'kafka.security.protocol' to be SSL")
        return None
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        if options.get(store, "PEM").strip().upper() != "PEM":
            raise OptionError(f"option 'kafka.{store}' is PEM, not '{options[store]}'; convert the Java store to PEM")
    check = options.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if check not in ("", "https"):
        raise OptionError(f"option 'kafka.ssl.endpoint.identification.algorithm' is https or empty, not '{check}'")
    return TlsSettings(
        truststore_location=options.get("ssl.truststore.location"),
        truststore_certificates=options.get("ssl.truststore.certificates"),
        keystore_location=options.get("ssl.keystore.location"),
        certificate_chain=options.get("ssl.keystore.certificate.chain"),
        key=options.get("ssl.keystore.key"),
        key_password=options.get("ssl.key.password"),
        check_host=check == "https",
    )


def _near(name: str) -> str:
    near = difflib.get_close_matches(name, sorted(KNOWN), n=1)
    return f"; did you mean 'kafka.{near[0]}'?" if near else "; it is no setting of Kafka's clients that we know"
