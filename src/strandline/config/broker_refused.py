"""Broker keys that are refused: each changes what Kafka promises, and the promise is not kept here.

Always true: a refused key may be spelled out with its default, which asks for nothing.
"""

from __future__ import annotations

from strandline.config.key import HIGH, LOW, MEDIUM, refused
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    CLASS,
    DAY_MS,
    DOUBLE,
    GIB,
    HOUR_MS,
    INT,
    INT_MAX,
    KIB,
    LIST,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    PASSWORD,
    SECOND_MS,
    SHORT,
    STRING,
    OneOf,
    Range,
)

# fmt: off
SASL = refused("SASL listeners are not served yet; use SSL listeners with ssl.client.auth=required.", (
    ("connection.failed.authentication.delay.ms", INT, 100, AT_LEAST_0, LOW),
    ("connections.max.reauth.ms", LONG, 0, None, MEDIUM),
    ("sasl.client.callback.handler.class", CLASS, None, None, MEDIUM),
    ("sasl.enabled.mechanisms", LIST, ("GSSAPI",), None, MEDIUM),
    ("sasl.jaas.config", PASSWORD, None, None, MEDIUM),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, MEDIUM),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60_000, None, MEDIUM),
    ("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), None, MEDIUM),
    ("sasl.kerberos.service.name", STRING, None, None, MEDIUM),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, MEDIUM),
    ("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, MEDIUM),
    ("sasl.login.callback.handler.class", CLASS, None, None, MEDIUM),
    ("sasl.login.class", CLASS, None, None, MEDIUM),
    ("sasl.login.connect.timeout.ms", INT, None, None, LOW),
    ("sasl.login.read.timeout.ms", INT, None, None, LOW),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, None, MEDIUM),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, None, MEDIUM),
    ("sasl.login.refresh.window.factor", DOUBLE, 0.8, None, MEDIUM),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, None, MEDIUM),
    ("sasl.login.retry.backoff.max.ms", LONG, 10 * SECOND_MS, None, LOW),
    ("sasl.login.retry.backoff.ms", LONG, 100, None, LOW),
    ("sasl.mechanism.controller.protocol", STRING, "GSSAPI", None, HIGH),
    ("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", None, MEDIUM),
    ("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", OneOf(("ES256", "RS256"), ignore_case=True), MEDIUM),
    ("sasl.oauthbearer.assertion.claim.aud", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, Range(0, 86400), LOW),
    ("sasl.oauthbearer.assertion.claim.iss", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, None, MEDIUM),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, Range(0, 3600), LOW),
    ("sasl.oauthbearer.assertion.claim.sub", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.file", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.private.key.file", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, None, MEDIUM),
    ("sasl.oauthbearer.assertion.template.file", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.client.credentials.client.id", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, MEDIUM),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, None, LOW),
    ("sasl.oauthbearer.expected.audience", LIST, (), None, HIGH),
    ("sasl.oauthbearer.expected.issuer", STRING, None, None, HIGH),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, HOUR_MS, None, LOW),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10 * SECOND_MS, None, LOW),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, LOW),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.jwt.retriever.class", CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", None, MEDIUM),
    ("sasl.oauthbearer.jwt.validator.class", CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", None, MEDIUM),
    ("sasl.oauthbearer.scope", STRING, None, None, MEDIUM),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, LOW),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, LOW),
    ("sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM),
    ("sasl.server.callback.handler.class", CLASS, None, None, MEDIUM),
    ("sasl.server.max.receive.size", INT, 512 * KIB, None, MEDIUM),
))

DELEGATION_TOKENS = refused("Delegation tokens are not served.", (
    ("delegation.token.expiry.check.interval.ms", LONG, HOUR_MS, AT_LEAST_1, LOW),
    ("delegation.token.expiry.time.ms", LONG, DAY_MS, AT_LEAST_1, MEDIUM),
    ("delegation.token.max.lifetime.ms", LONG, 7 * DAY_MS, AT_LEAST_1, MEDIUM),
    ("delegation.token.secret.key", PASSWORD, None, None, MEDIUM),
))

TIERED_STORAGE = refused("Tiered storage is not built; all data stays in log.dirs.", (
    ("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, MEDIUM),
    ("log.local.retention.bytes", LONG, -2, Range(-2), MEDIUM),
    ("log.local.retention.ms", LONG, -2, Range(-2), MEDIUM),
    ("remote.fetch.max.wait.ms", INT, 500, AT_LEAST_1, MEDIUM),
    ("remote.list.offsets.request.timeout.ms", LONG, 30 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("remote.log.index.file.cache.total.size.bytes", LONG, GIB, AT_LEAST_1, LOW),
    ("remote.log.index.file.cache.ttl.ms", LONG, 15 * MINUTE_MS, Range(-1), LOW),
    ("remote.log.manager.copier.thread.pool.size", INT, 10, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.copy.quota.window.num", INT, 11, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.copy.quota.window.size.seconds", INT, 1, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.expiration.thread.pool.size", INT, 10, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.fetch.quota.window.num", INT, 11, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.follower.thread.pool.size", INT, 2, AT_LEAST_1, MEDIUM),
    ("remote.log.manager.task.interval.ms", LONG, 30 * SECOND_MS, AT_LEAST_1, LOW),
    ("remote.log.manager.task.retry.backoff.max.ms", LONG, 30 * SECOND_MS, AT_LEAST_1, LOW),
    ("remote.log.manager.task.retry.backoff.ms", LONG, 500, AT_LEAST_1, LOW),
    ("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, None, LOW),
    ("remote.log.manager.thread.pool.size", INT, 2, AT_LEAST_1, MEDIUM),
    ("remote.log.metadata.custom.metadata.max.bytes", INT, 128, AT_LEAST_0, LOW),
    ("remote.log.metadata.manager.class.name", STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", None, MEDIUM),
    ("remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM),
    ("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", None, MEDIUM),
    ("remote.log.metadata.manager.listener.name", STRING, None, None, MEDIUM),
    ("remote.log.reader.max.pending.tasks", INT, 100, AT_LEAST_1, MEDIUM),
    ("remote.log.reader.threads", INT, 10, AT_LEAST_1, MEDIUM),
    ("remote.log.storage.manager.class.name", STRING, None, None, MEDIUM),
    ("remote.log.storage.manager.class.path", STRING, None, None, MEDIUM),
    ("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", None, MEDIUM),
    ("remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM),
    ("log.remote.copy.lag.ms", LONG, None, None, MEDIUM),
    ("log.remote.copy.lag.bytes", LONG, None, None, MEDIUM),
))

QUOTAS = refused("Quotas are not enforced, so a limit set here would be a promise we do not keep.", (
    ("alter.log.dirs.replication.quota.window.num", INT, 11, AT_LEAST_1, LOW),
    ("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW),
    ("controller.quota.window.num", INT, 11, AT_LEAST_1, LOW),
    ("controller.quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW),
    ("max.connection.creation.rate", INT, INT_MAX, AT_LEAST_0, MEDIUM),
    ("max.connections.per.ip.overrides", STRING, "", None, MEDIUM),
    ("quota.window.num", INT, 11, AT_LEAST_1, LOW),
    ("quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW),
    ("replica.alter.log.dirs.io.max.bytes.per.second", LONG, None, None, MEDIUM),
))

CLASSES = refused("It names a Java class to load, and no code is ever loaded by configuration.", (
    ("alter.config.policy.class.name", CLASS, None, None, LOW),
    ("client.quota.callback.class", CLASS, None, None, LOW),
    ("config.providers", LIST, (), None, LOW),
    ("create.topic.policy.class.name", CLASS, None, None, LOW),
    ("kafka.metrics.polling.interval.secs", INT, 10, AT_LEAST_1, LOW),
    ("kafka.metrics.reporters", LIST, (), None, LOW),
    ("metric.reporters", LIST, (), None, LOW),
    ("principal.builder.class", CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", None, MEDIUM),
    ("security.providers", STRING, None, None, LOW),
    ("ssl.engine.factory.class", CLASS, None, None, LOW),
))

AUTHORIZER = refused("There is no authorizer yet; reach is limited by listeners and ssl.client.auth.", (
    ("authorizer.class.name", STRING, "", None, LOW),
    ("early.start.listeners", LIST, None, None, HIGH),
    ("ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW),
))

STORE_PASSWORDS = refused("A PEM store has no password of its own; an encrypted key is opened with ssl.key.password.", (
    ("ssl.keystore.password", PASSWORD, None, None, MEDIUM),
    ("ssl.truststore.password", PASSWORD, None, None, MEDIUM),
))

TLS_DETAILS = refused("It names an option of Java's TLS; here OpenSSL's own choices within ssl.enabled.protocols are kept.", (
    ("ssl.allow.dn.changes", BOOLEAN, False, None, LOW),
    ("ssl.allow.san.changes", BOOLEAN, False, None, LOW),
    ("ssl.cipher.suites", LIST, (), None, MEDIUM),
    ("ssl.provider", STRING, None, None, MEDIUM),
    ("ssl.secure.random.implementation", STRING, None, None, LOW),
))

SHARE_GROUPS = refused("Share groups are not served.", (
    ("group.share.assignment.interval.ms", INT, SECOND_MS, AT_LEAST_0, MEDIUM),
    ("group.share.assignors", LIST, ("simple",), None, MEDIUM),
    ("group.share.delivery.count.limit", INT, 5, Range(2, 10), MEDIUM),
    ("group.share.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.share.initialize.retry.interval.ms", INT, 30 * SECOND_MS, AT_LEAST_1, LOW),
    ("group.share.max.assignment.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_0, MEDIUM),
    ("group.share.max.delivery.count.limit", INT, 10, Range(5, 25), MEDIUM),
    ("group.share.max.heartbeat.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.share.max.partition.max.record.locks", INT, 4000, Range(2000, 10000), MEDIUM),
    ("group.share.max.record.lock.duration.ms", INT, MINUTE_MS, Range(30000, 3600000), MEDIUM),
    ("group.share.max.session.timeout.ms", INT, MINUTE_MS, AT_LEAST_1, MEDIUM),
    ("group.share.max.share.sessions", INT, 2000, AT_LEAST_1, MEDIUM),
    ("group.share.max.size", INT, 200, Range(1, 1000), MEDIUM),
    ("group.share.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM),
    ("group.share.min.delivery.count.limit", INT, 2, Range(2, 5), MEDIUM),
    ("group.share.min.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.share.min.partition.max.record.locks", INT, 100, Range(100, 2000), MEDIUM),
    ("group.share.min.record.lock.duration.ms", INT, 15 * SECOND_MS, Range(1000, 30000), MEDIUM),
    ("group.share.min.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.share.partition.max.record.locks", INT, 2000, Range(100, 10000), MEDIUM),
    ("group.share.persister.class.name", STRING, "org.apache.kafka.server.share.persister.DefaultStatePersister", None, MEDIUM),
    ("group.share.record.lock.duration.ms", INT, 30 * SECOND_MS, Range(1000, 3600000), MEDIUM),
    ("group.share.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.share.assignor.offload.enable", BOOLEAN, None, None, MEDIUM),
    ("group.share.dlq.manager.class.name", STRING, None, None, MEDIUM),
    ("errors.deadletterqueue.auto.create.topics.enable", BOOLEAN, None, None, MEDIUM),
    ("errors.deadletterqueue.topic.name.prefix", STRING, None, None, MEDIUM),
))

STREAMS_GROUPS = refused("Streams groups are not served; Kafka Streams works with the classic protocol.", (
    ("group.streams.assignment.interval.ms", INT, SECOND_MS, AT_LEAST_0, MEDIUM),
    ("group.streams.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.initial.rebalance.delay.ms", INT, 3 * SECOND_MS, AT_LEAST_0, MEDIUM),
    ("group.streams.max.assignment.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_0, MEDIUM),
    ("group.streams.max.heartbeat.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.max.session.timeout.ms", INT, MINUTE_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.max.size", INT, INT_MAX, AT_LEAST_1, MEDIUM),
    ("group.streams.max.standby.replicas", INT, 2, AT_LEAST_0, MEDIUM),
    ("group.streams.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM),
    ("group.streams.min.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.min.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.num.standby.replicas", INT, 0, AT_LEAST_0, MEDIUM),
    ("group.streams.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM),
    ("group.streams.acceptable.recovery.lag", LONG, None, None, MEDIUM),
    ("group.streams.assignor.offload.enable", BOOLEAN, None, None, MEDIUM),
    ("group.streams.assignors", LIST, None, None, MEDIUM),
    ("group.streams.max.warmup.replicas", INT, None, None, MEDIUM),
    ("group.streams.min.task.offset.interval.ms", INT, None, None, MEDIUM),
    ("group.streams.num.warmup.replicas", INT, None, None, MEDIUM),
    ("group.streams.rack.aware.assignment.tags", LIST, None, None, MEDIUM),
    ("group.streams.task.offset.interval.ms", INT, None, None, MEDIUM),
    ("group.streams.topology.description.plugin.class", CLASS, None, None, MEDIUM),
))

PREALLOCATION = refused("Segments grow as they are written, so there is nothing to preallocate.", (
    ("log.preallocate", BOOLEAN, False, None, MEDIUM),
))

CLEANER = refused("The cleaner is still to come; it will always be on, and set its own pace.", (
    ("log.cleaner.enable", BOOLEAN, True, None, MEDIUM),
    ("log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, None, MEDIUM),
))

NOT_BUILT = refused("The part of Kafka that it turns on is not built.", (
    ("controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW),
    ("cordoned.log.dirs", LIST, (), None, MEDIUM),
    ("telemetry.max.bytes", INT, MIB, AT_LEAST_1, LOW),
    ("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW),
    ("unstable.api.versions.enable", BOOLEAN, False, None, HIGH),
    ("unstable.feature.versions.enable", BOOLEAN, False, None, HIGH),
))

# fmt: on
KEYS = (
    *SASL,
    *DELEGATION_TOKENS,
    *TIERED_STORAGE,
    *QUOTAS,
    *CLASSES,
    *AUTHORIZER,
    *STORE_PASSWORDS,
    *TLS_DETAILS,
    *SHARE_GROUPS,
    *STREAMS_GROUPS,
    *PREALLOCATION,
    *CLEANER,
    *NOT_BUILT,
)
