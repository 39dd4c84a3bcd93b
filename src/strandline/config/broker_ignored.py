"""Broker keys that are accepted with a warning, because they only tune how Kafka itself is built.

Always true: leaving one of them out changes nothing that a client can see, and neither does setting it, in a file or at run
time; a running broker takes those that a running Kafka takes.
"""

from __future__ import annotations

from strandline.config.key import CLUSTER_WIDE, HIGH, LOW, MEDIUM, PER_BROKER, ignored
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    DOUBLE,
    INT,
    KIB,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    SHORT,
    STRING,
    NumberRange,
)

DYNAMIC = dict.fromkeys(
    (
        "background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.preallocate",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "share.coordinator.cached.buffer.max.bytes",
    ),
    CLUSTER_WIDE,
) | dict.fromkeys(("ssl.keymanager.algorithm", "ssl.protocol", "ssl.trustmanager.algorithm"), PER_BROKER)
"""Those that Kafka lets change at run time; tools set some of them without asking."""

# fmt: off
THREADS = ignored("It sizes a thread pool of the JVM; here one event loop does that work.", (
    ("background.threads", INT, 10, AT_LEAST_1, HIGH),
    ("group.coordinator.background.threads", INT, 2, AT_LEAST_1, HIGH),
    ("group.coordinator.threads", INT, 4, AT_LEAST_1, HIGH),
    ("num.io.threads", INT, 8, AT_LEAST_1, HIGH),
    ("num.network.threads", INT, 3, AT_LEAST_1, HIGH),
    ("num.recovery.threads.per.data.dir", INT, 2, AT_LEAST_1, HIGH),
    ("num.replica.alter.log.dirs.threads", INT, None, None, HIGH),
    ("num.replica.fetchers", INT, 1, AT_LEAST_1, HIGH),
    ("queued.max.requests", INT, 500, AT_LEAST_1, HIGH),
    ("group.consumer.assignor.offload.enable", BOOLEAN, None, None, MEDIUM),
), DYNAMIC)

BUFFERS = ignored("It sizes a buffer of the JVM; here the system and the work at hand decide.", (
    ("group.coordinator.append.linger.ms", INT, -1, NumberRange(-1), MEDIUM),
    ("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, NumberRange(512 * KIB), MEDIUM),
    ("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, None, MEDIUM),
    ("log.cleaner.io.buffer.size", INT, 512 * KIB, AT_LEAST_0, MEDIUM),
    ("offsets.load.buffer.size", INT, 5 * MIB, AT_LEAST_1, HIGH),
    ("replica.socket.receive.buffer.bytes", INT, 64 * KIB, None, HIGH),
    ("share.coordinator.load.buffer.size", INT, 5 * MIB, AT_LEAST_1, HIGH),
    ("transaction.state.log.load.buffer.size", INT, 5 * MIB, AT_LEAST_1, HIGH),
), DYNAMIC)

LIBRARIES = ignored("It tunes a part of Kafka's own implementation that has no counterpart here.", (
    ("controller.performance.always.log.threshold.ms", LONG, 2 * SECOND_MS, AT_LEAST_0, MEDIUM),
    ("controller.performance.sample.period.ms", LONG, MINUTE_MS, NumberRange(100), MEDIUM),
    ("controller.socket.timeout.ms", INT, 30 * SECOND_MS, None, MEDIUM),
    ("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM),
    ("fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM),
    ("metrics.num.samples", INT, 2, AT_LEAST_1, LOW),
    ("metrics.recording.level", STRING, "INFO", None, LOW),
    ("metrics.sample.window.ms", LONG, 30 * SECOND_MS, AT_LEAST_1, LOW),
    ("producer.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM),
    ("server.max.startup.time.ms", LONG, LONG_MAX, AT_LEAST_0, MEDIUM),
    ("share.fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM),
    ("ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM),
    ("ssl.protocol", STRING, "TLSv1.3", None, MEDIUM),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM),
), DYNAMIC)

METADATA_LOG = ignored(
    "It tunes how Kafka writes its metadata log; here records are written as they are decided, and old files go at once.", (
    ("controller.quorum.append.linger.ms", INT, 25, AT_LEAST_0, MEDIUM),
    ("internal.metadata.delete.delay.millis", LONG, MINUTE_MS, None, LOW),
    ("internal.metadata.max.batch.size.in.bytes", INT, 8 * MIB, None, LOW),
))

SHARE_COORDINATOR = ignored("Share groups are not served, so their coordinator has nothing to configure.", (
    ("share.coordinator.append.linger.ms", INT, -1, NumberRange(-1), MEDIUM),
    ("share.coordinator.cached.buffer.max.bytes", INT, 1_048_588, NumberRange(512 * KIB), MEDIUM),
    ("share.coordinator.cold.partition.snapshot.interval.ms", INT, 5 * MINUTE_MS, AT_LEAST_1, LOW),
    ("share.coordinator.snapshot.update.records.per.snapshot", INT, 500, NumberRange(0, 500), MEDIUM),
    ("share.coordinator.state.topic.compression.codec", INT, 0, None, HIGH),
    ("share.coordinator.state.topic.min.isr", SHORT, 2, AT_LEAST_1, HIGH),
    ("share.coordinator.state.topic.num.partitions", INT, 50, AT_LEAST_1, HIGH),
    ("share.coordinator.state.topic.prune.interval.ms", INT, 5 * MINUTE_MS, AT_LEAST_1, LOW),
    ("share.coordinator.state.topic.replication.factor", SHORT, 3, AT_LEAST_1, HIGH),
    ("share.coordinator.state.topic.segment.bytes", INT, 100 * MIB, AT_LEAST_1, HIGH),
    ("share.coordinator.threads", INT, 1, AT_LEAST_1, MEDIUM),
    ("share.coordinator.write.timeout.ms", INT, 5 * SECOND_MS, AT_LEAST_1, HIGH),
), DYNAMIC)

TOPIC_DEFAULTS = ignored("It is the default of a topic key that has no effect here.", (
    ("log.local.retention.bytes", LONG, -2, NumberRange(-2), MEDIUM),
    ("log.local.retention.ms", LONG, -2, NumberRange(-2), MEDIUM),
    ("log.preallocate", BOOLEAN, False, None, MEDIUM),
), DYNAMIC)

# fmt: on
KEYS = (*THREADS, *BUFFERS, *LIBRARIES, *METADATA_LOG, *SHARE_COORDINATOR, *TOPIC_DEFAULTS)
