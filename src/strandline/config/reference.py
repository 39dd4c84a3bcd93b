"""The reference of all keys as Markdown, printed from the table.

`python -m strandline.config.reference > docs/config.md` makes the page; a test holds the page and the table together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from strandline.config.broker import BROKER
from strandline.config.group import GROUP
from strandline.config.key import REQUIRED, Dynamic, Key, Treatment
from strandline.config.topic import TOPIC
from strandline.config.types import DAY_MS, GIB, HOUR_MS, INT_MAX, KIB, LONG_MAX, MIB, MINUTE_MS, show

OPENING = """# Configuration

Strandline is configured with Kafka's property names: `strandline server server.properties`, environment names as in Kafka's
images (`KAFKA_NUM_PARTITIONS=3`), and `--override key=value`; the last wins. This page is printed from the table in
`src/strandline/config/`, which also answers DescribeConfigs and checks IncrementalAlterConfigs.

Every key of Kafka 4 is known. A key is *honoured*, *ignored* with a warning (it only tunes a JVM's threads, buffers or
libraries, or a part that is off), or *refused* with a reason; a refused key may be spelled out with its default. A name that is no
key is refused. DescribeConfigs has the rows of Kafka 4.3: a key that is refused shows its default. Read-only here and not in
Kafka are `listeners`, `listener.security.protocol.map` and the `ssl.*` keys, which count from the next start, and what is refused.

`cleanup.policy=compact` asks for keys, and the cleaner keeps the last value of each: it works in a niced child process, on one log
at a time (`log.cleaner.threads`), and starts none while there is nothing to compact.

Defaults are Kafka's, but for these:

| Key | Kafka | Here | Why |
| --- | --- | --- | --- |
"""

DIFFERENT_DEFAULTS = {
    "broker.heartbeat.interval.ms": ("2000", "a dead broker is noticed sooner"),
    "broker.session.timeout.ms": ("9000", "a dead broker is noticed sooner"),
    "group.coordinator.rebalance.protocols": ("classic,consumer,streams", "streams groups are not served"),
    "group.consumer.max.size": ("2147483647", "what a peer can make us hold is finite"),
    "group.max.size": ("2147483647", "what a peer can make us hold is finite"),
    "log.dir": ("/tmp/kafka-logs", "never another broker's directory by accident"),
    "max.connections": ("2147483647", "what a peer can make us hold is finite"),
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter", "there is no JMX"),
    "queued.max.request.bytes": ("-1", "what a peer can make us hold is finite"),
    "socket.receive.buffer.bytes": ("102400", "more in flight, and still in the processor's caches"),
    "socket.send.buffer.bytes": ("102400", "more in flight, and still in the processor's caches"),
    "ssl.keystore.type": ("JKS", "only PEM is read"),
    "ssl.truststore.type": ("JKS", "only PEM is read"),
}
"""Kafka's default and our reason, for every key whose default is not Kafka's."""


GROUP_KEYS = """For single groups of the consumer protocol (KIP-848): `strandline configs set --group NAME KEY=VALUE`. The
default comes from the broker key named with it; the broker's `group.consumer.min.…` and `group.consumer.max.…` bound what a
group may have.

"""


def reference() -> str:
    """The whole page."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield OPENING
    for name, (theirs, why) in DIFFERENT_DEFAULTS.items():
        yield f"| `{name}` | `{theirs}` | `{show(BROKER[name].default_value)}` | {why} |\n"
    yield "\n## Topic keys\n\n"
    yield "The default comes from the broker keys named with it, the first that is given.\n\n"
    yield from _table(_treated(TOPIC, Treatment.HONOURED))
    yield "\nStored with a warning, as Kafka stores them without effect while tiered storage is off:\n\n"
    yield from _reasons(_treated(TOPIC, Treatment.IGNORED))
    yield "\nRefused:\n\n"
    yield from _reasons(_treated(TOPIC, Treatment.REFUSED))
    yield "\n## Group keys\n\n"
    yield GROUP_KEYS
    yield from _table(_treated(GROUP, Treatment.HONOURED))
    yield "\n## Broker keys\n\n"
    yield from _table(_treated(BROKER, Treatment.HONOURED))
    yield "\n## Broker keys that are ignored with a warning\n\n"
    yield from _reasons(_treated(BROKER, Treatment.IGNORED))
    yield "\n## Broker keys that are refused\n\n"
    yield from _reasons(_treated(BROKER, Treatment.REFUSED))


def _treated(keys: dict[str, Key], treatment: Treatment) -> list[Key]:
    return sorted((key for key in keys.values() if key.treatment is treatment), key=lambda key: key.name)


def _table(keys: Iterable[Key]) -> Iterator[str]:
    yield "| Key | Type | Default | Values | Importance | Change | Meaning |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    for key in keys:
        doc = key.doc
        if key.synonyms:
            doc += " Broker: " + ", ".join(f"`{name}`" for name, _ in key.synonyms) + "."
        change = key.dynamic.value if key.where.value == "broker" else "any time"
        change = "restart" if key.dynamic is Dynamic.READ_ONLY else change
        values = "" if key.check is None else str(key.check)
        yield (
            f"| `{key.name}` | {key.type.name.lower()} | {_default(key)} | {values} | {key.importance.value} | {change} | {doc} |\n"
        )


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "(must be given)"
    if key.default is None:
        return ""
    text = show(key.default)
    return f"`{text}`{_in_words(key)}" if text else "(empty)"


def _in_words(key: Key) -> str:
    """A large number of bytes or milliseconds once more, as people say it."""
    value = key.default
    if not isinstance(value, int) or value < 1024:
        return ""
    if value in (INT_MAX, LONG_MAX):
        return " (no limit)"
    units = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")) if key.name.endswith("ms") else ()
    if "bytes" in key.name:
        units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, ""))
    for size, unit in units:
        if unit and value % size == 0:
            return f" ({value // size} {unit})"
    return ""


def _reasons(keys: Iterable[Key]) -> Iterator[str]:
    yield "| Keys | Reason |\n| --- | --- |\n"
    families: dict[str, list[str]] = {}
    for key in keys:
        families.setdefault(key.doc, []).append(f"`{key.name}`")
    for reason, names in families.items():
        yield f"| {', '.join(names)} | {reason} |\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
