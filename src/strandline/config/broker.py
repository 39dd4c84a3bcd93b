"""Every broker key by name, and what to say about a name that is none.

Always true: all broker keys of Kafka 4 are here, each with its treatment; a name that is not here is refused, with the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.config import (
    broker_groups,
    broker_ignored,
    broker_log,
    broker_network,
    broker_node,
    broker_refused,
    broker_replication,
    broker_transactions,
)
from strandline.config.errors import ConfigError
from strandline.config.key import Key, table

# fmt: off
_UNLISTED = frozenset((
    # Internal keys of Kafka 4.3.
    "controller.performance.always.log.threshold.ms", "controller.performance.sample.period.ms",
    "group.share.initialize.retry.interval.ms", "group.share.persister.class.name",
    "internal.metadata.delete.delay.millis", "internal.metadata.max.batch.size.in.bytes",
    "remote.log.index.file.cache.ttl.ms", "remote.log.manager.task.retry.backoff.max.ms",
    "remote.log.manager.task.retry.backoff.ms", "remote.log.manager.task.retry.jitter",
    "server.max.startup.time.ms", "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms", "unstable.api.versions.enable", "unstable.feature.versions.enable",
    # Keys that came after 4.3, or are only ever dynamic.
    "errors.deadletterqueue.auto.create.topics.enable", "errors.deadletterqueue.topic.name.prefix",
    "group.consumer.assignor.offload.enable", "group.share.assignor.offload.enable", "group.share.dlq.manager.class.name",
    "group.streams.acceptable.recovery.lag", "group.streams.assignor.offload.enable", "group.streams.assignors",
    "group.streams.max.warmup.replicas", "group.streams.min.task.offset.interval.ms",
    "group.streams.num.warmup.replicas", "group.streams.rack.aware.assignment.tags",
    "group.streams.task.offset.interval.ms", "group.streams.topology.description.plugin.class",
    "log.remote.copy.lag.bytes", "log.remote.copy.lag.ms", "replica.alter.log.dirs.io.max.bytes.per.second",
))
# fmt: on

BROKER: dict[str, Key] = {
    name: key._replace(internal=True) if name in _UNLISTED else key
    for name, key in table(
        broker_node.KEYS,
        broker_network.KEYS,
        broker_log.KEYS,
        broker_replication.KEYS,
        broker_groups.KEYS,
        broker_transactions.KEYS,
        broker_ignored.KEYS,
        broker_refused.KEYS,
    ).items()
}

SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Broker keys that say the same thing in other units; the first that is given counts."""

REMOVED = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "auto.include.jmx.reporter": "there are no JMX metrics here",
    "broker.id.generation.enable": "give every node its node.id",
    "control.plane.listener.name": "controllers have their own listeners, see controller.listener.names",
    "delegation.token.master.key": "delegation tokens are not served",
    "host.name": "use listeners",
    "inter.broker.protocol.version": "the cluster's metadata.version takes its place",
    "log.message.downconversion.enable": "records are never converted to the old formats",
    "log.message.format.version": "records are always in format 2",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
    "offsets.commit.required.acks": "offsets are always committed by all in-sync replicas",
    "port": "use listeners",
    "reserved.broker.max.id": "give every node its node.id",
}
"""Names from before Kafka 4, and what came in their place."""

FOREIGN_PREFIX = "confluent."
"""Keys of Confluent's distribution, which Apache Kafka gives no meaning to either; its stock files contain some."""


def unknown(name: str, known: Iterable[str], kind: str) -> ConfigError:
    """What to say about a name that is not in the table."""
    if name in REMOVED:
        return ConfigError(f"{name} was removed in Kafka 4: {REMOVED[name]}.")
    if name.startswith(("zookeeper.", "password.encoder.")):
        return ConfigError(f"{name} was removed in Kafka 4: there is no ZooKeeper; the controllers keep the metadata.")
    return ConfigError(f"Unknown {kind} config name: {name}{did_you_mean(name, known)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, or nothing."""
    import difflib  # only needed after a mistake, and slow to import

    near = difflib.get_close_matches(name[:200], list(known), n=1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""
