"""The names of Kafka's client settings, and what becomes of each.

Always true: a name is in one table only. CLIENT, CONSUMER and PRODUCER say how the text is read; the harmless and the forbidden
come with the reason that the warning or error gives.
"""

from __future__ import annotations

from typing import Final

BACKOFFS: Final = frozenset(
    {"retry.backoff.ms", "retry.backoff.max.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms"}
)

CLIENT: Final = {
    "client.id": "text",
    "request.timeout.ms": "count",
    "default.api.timeout.ms": "count",
    "socket.connection.setup.timeout.ms": "count",
    "metadata.max.age.ms": "count",
    **dict.fromkeys(sorted(BACKOFFS), "ms"),
}

CONSUMER: Final = {
    "isolation.level": "isolation",
    "fetch.min.bytes": "count",
    "fetch.max.bytes": "count",
    "max.partition.fetch.bytes": "count",
    "fetch.max.wait.ms": "ms",
    "check.crcs": "yes",
}

PRODUCER: Final = {
    "acks": "acks",
    "enable.idempotence": "yes",
    "batch.size": "count",
    "linger.ms": "ms",
    "compression.type": "codec",
    "compression.gzip.level": "gzip level",
    "compression.lz4.level": "lz4 level",
    "compression.zstd.level": "zstd level",
    "max.request.size": "count",
    "buffer.memory": "count",
    "max.in.flight.requests.per.connection": "count",
    "delivery.timeout.ms": "count",
}

TLS: Final = frozenset(
    {
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.truststore.type",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)

REQUIRED: Final = "bootstrap.servers"
PROTOCOL: Final = "security.protocol"

_NO_GROUP = "reading joins no consumer group"
_OURS = "it tunes the Java client"

HARMLESS: Final = {
    "group.id": "reading joins no consumer group; to have progress committed to a group, set the option 'groupId'",
    **dict.fromkeys(
        (
            "auto.commit.interval.ms",
            "group.instance.id",
            "group.protocol",
            "group.remote.assignor",
            "heartbeat.interval.ms",
            "max.poll.interval.ms",
            "partition.assignment.strategy",
            "session.timeout.ms",
        ),
        _NO_GROUP,
    ),
    **dict.fromkeys(
        (
            "allow.auto.create.topics",
            "auto.include.jmx.reporter",
            "client.dns.lookup",
            "client.rack",
            "connections.max.idle.ms",
            "enable.metrics.push",
            "exclude.internal.topics",
            "max.block.ms",
            "max.poll.records",
            "metadata.max.idle.ms",
            "metadata.recovery.rebootstrap.trigger.ms",
            "metadata.recovery.strategy",
            "metric.reporters",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "receive.buffer.bytes",
            "send.buffer.bytes",
            "socket.connection.setup.timeout.max.ms",
            "ssl.keymanager.algorithm",
            "ssl.protocol",
            "ssl.provider",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
        _OURS,
    ),
    "retries": "a batch is tried again until delivery.timeout.ms is over",
    "transaction.timeout.ms": "the sink has no transactions",
}

_BYTES = "keys and values are bytes here; convert them with DataFrame operations"

FORBIDDEN: Final = {
    "auto.offset.reset": "say where to start with the option 'startingOffsets'; Spark's checkpoint decides afterwards",
    "enable.auto.commit": "offsets are in Spark's checkpoint; to have them committed to a group too, set the option 'groupId'",
    "interceptor.classes": "interceptors are Java classes that may change records",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "partitioner.class": "it is a Java class; give each row its partition in the column 'partition' instead",
    "partitioner.ignore.keys": "give each row its partition in the column 'partition' instead",
    "transactional.id": "the sink is idempotent and has no transactions",
    "ssl.cipher.suites": "Python's own choice of cipher suites is used",
    "ssl.enabled.protocols": "TLS 1.2 and 1.3 are used",
    "ssl.engine.factory.class": "it is a Java class; give PEM in 'kafka.ssl.truststore.location'",
    "ssl.truststore.password": "PEM truststores have no password; convert the Java store to PEM",
    "ssl.keystore.password": "PEM keystores have none; the key's own password is 'kafka.ssl.key.password'",
    "security.providers": "they are Java classes",
}

FORBIDDEN_PREFIXES: Final = {
    "sasl.": "the connector speaks PLAINTEXT and SSL without SASL",
    "config.providers": "they are Java classes",
}

KNOWN: Final = frozenset({REQUIRED, PROTOCOL, *CLIENT, *CONSUMER, *PRODUCER, *TLS, *HARMLESS})
