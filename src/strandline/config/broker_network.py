"""Broker keys: listeners, connections and TLS.

Always true: every limit on what a peer can make us hold is finite by default.
"""

from __future__ import annotations

from strandline.config.address import AddressOrNothing
from strandline.config.key import CLUSTER_WIDE, HIGH, LOW, MEDIUM, READ_ONLY, Key
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    INT,
    INT_MAX,
    KIB,
    LIST,
    LONG,
    MIB,
    MINUTE_MS,
    PASSWORD,
    SECOND_MS,
    STRING,
    ListOf,
    NumberRange,
    OneOf,
    Value,
    invalid,
)


class PemStore:
    """The one store format that is read."""

    def check(self, name: str, value: Value) -> None:
        if not isinstance(value, str) or value.upper() != "PEM":
            store = name.removesuffix(".type")
            raise invalid(
                name,
                value,
                "Only PEM is read; convert with 'keytool -importkeystore -srckeystore OLD -destkeystore new.p12 "
                "-deststoretype PKCS12' and "
                f"'openssl pkcs12 -in new.p12 -nodes -out new.pem', then set {name}=PEM and {store}.location=new.pem",
            )

    def __str__(self) -> str:
        return "PEM"


# fmt: off
KEYS = (
    Key("listeners", LIST, ("PLAINTEXT://:9092",), ListOf(empty_allowed=False), HIGH, READ_ONLY,
        "The addresses to bind, as NAME://host:port; an empty host is every interface, or loopback for PLAINTEXT."),
    Key("advertised.listeners", LIST, None, ListOf(empty_allowed=False), HIGH, READ_ONLY,
        "The addresses that clients are given, when they differ from listeners."),
    Key("listener.security.protocol.map", STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", None, LOW, READ_ONLY,
        "The security protocol of each listener name, as NAME:PROTOCOL."),
    Key("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY,
        "The listener that brokers use among themselves. Only there, and on the controllers' listeners, may a peer act as a "
        "broker: give it a port that clients do not reach."),
    Key("previous.inter.broker.listener.name", STRING, None, None, LOW, READ_ONLY,
        "The listener that brokers used among themselves before: while a cluster is restarted node by node to use another one, "
        "brokers are served there too, and those that have no other are asked there if it has the same security protocol. Remove "
        "it afterwards."),
    Key("security.inter.broker.protocol", STRING,
        "PLAINTEXT", OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), MEDIUM, READ_ONLY,
        "The security protocol that brokers use among themselves, when no listener is named for it."),
    Key("socket.send.buffer.bytes", INT, 512 * KIB, NumberRange(-1), HIGH, READ_ONLY,
        "The system's buffer for what a connection has still to send; -1 leaves it to the system, which grows it past the "
        "processor's caches."),
    Key("socket.receive.buffer.bytes", INT, 512 * KIB, NumberRange(-1), HIGH, READ_ONLY,
        "The system's buffer for what a connection has received and the node has not read; -1 leaves it to the system."),
    Key("socket.listen.backlog.size", INT, 50, AT_LEAST_1, MEDIUM, READ_ONLY,
        "How many connections the system holds while they wait to be accepted."),
    Key("socket.request.max.bytes", INT, 100 * MIB, AT_LEAST_1, HIGH, READ_ONLY,
        "A request that announces more bytes than this closes its connection."),
    Key("socket.connection.setup.timeout.ms", LONG, 10 * SECOND_MS, None, MEDIUM, READ_ONLY,
        "How long a connection to another node may take to be set up, the first time."),
    Key("socket.connection.setup.timeout.max.ms", LONG, 30 * SECOND_MS, None, MEDIUM, READ_ONLY,
        "How long it may take at most, as failures in a row lengthen the wait."),
    Key("queued.max.request.bytes", LONG, 256 * MIB, None, MEDIUM, READ_ONLY,
        "While this many bytes of requests are being handled, no further request is read; -1 for no limit."),
    Key("queued.max.response.bytes", LONG, 256 * MIB, NumberRange(MIB), MEDIUM, READ_ONLY,
        "While connections hold this many bytes of replies that their peers have not read, those with unread replies wait until "
        "they are read."),
    Key("queued.max.response.bytes.per.connection", INT, 8 * MIB, NumberRange(64 * KIB), MEDIUM, READ_ONLY,
        "How many unread bytes of replies one connection may hold: a Fetch reads no more than what is left of it, though always "
        "one batch."),
    Key("socket.receive.stalled.timeout.ms", INT, 10 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "A request for which memory is held and of which less than 64 KiB/s arrive over this time closes its connection."),
    Key("socket.send.stalled.timeout.ms", INT, 30 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "A connection whose peer reads nothing of its replies for this long is closed; sooner while queued.max.response.bytes is "
        "reached."),
    Key("unstable.api.versions.enable", BOOLEAN, False, None, HIGH, READ_ONLY,
        "Whether versions of APIs are served and advertised that Kafka may still change: InitProducerId 6 (two-phase commit, "
        "KIP-939)."),
    Key("ssl.handshake.timeout.ms", INT, 10 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "A connection to a TLS listener that has not finished its handshake within this time is closed."),
    Key("connections.max.idle.ms", LONG, 10 * MINUTE_MS, None, MEDIUM, READ_ONLY,
        "A connection that was idle for this long is closed."),
    Key("watchdog.timeout.ms", INT, 2 * SECOND_MS, AT_LEAST_0, MEDIUM, READ_ONLY,
        "A node that stands still for so long, frozen or hung, has its connections closed by a second process, so that its clients "
        "look for another leader; 0 turns that off. Linux only."),
    Key("metrics.listener", STRING, "", AddressOrNothing(), MEDIUM, READ_ONLY,
        "Where this node serves Prometheus metrics, its events and its replicas' positions over HTTP, as host:port; empty turns "
        "it off. It has no authentication: keep it on loopback, which :port stands for, or behind a proxy."),
    Key("metrics.allowed.hosts", LIST, (), None, LOW, READ_ONLY,
        "Names by which metrics.listener may be asked, beside loopback's, its own host, the advertised ones and the address it is "
        "reached at. A browser that was led here under another name is refused."),
    Key("max.connections", INT, 10_000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "The most connections of clients at a time, those in their TLS handshake included; never more than the system's limit of "
        "open files leaves room for. Connections to controller listeners, and to the inter-broker listener if clients have "
        "another one, do not count."),
    Key("max.connections.per.ip", INT, INT_MAX, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "The most connections it accepts from one address, but for those listeners."),
    Key("fetch.max.bytes", INT, 55 * MIB, NumberRange(KIB), MEDIUM, READ_ONLY,
        "The most bytes one Fetch answer holds; a first batch larger than this is still returned, so that a reader can go on."),
    Key("max.incremental.fetch.session.cache.slots", INT, 1000, AT_LEAST_0, MEDIUM, READ_ONLY,
        "How many incremental fetch sessions are remembered; the others fetch in full."),
    Key("ssl.keystore.type", STRING, "PEM", PemStore(), MEDIUM, READ_ONLY,
        "The format of the key store: PEM."),
    Key("ssl.keystore.location", STRING, None, None, MEDIUM, READ_ONLY,
        "A PEM file with this node's private key and its certificate chain."),
    Key("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The certificate chain itself, in PEM."),
    Key("ssl.keystore.key", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The private key itself, in PEM (PKCS #8)."),
    Key("ssl.key.password", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The password of an encrypted private key."),
    Key("ssl.truststore.type", STRING, "PEM", PemStore(), MEDIUM, READ_ONLY,
        "The format of the trust store: PEM."),
    Key("ssl.truststore.location", STRING, None, None, MEDIUM, READ_ONLY,
        "A PEM file with the certificates that peers are checked against."),
    Key("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "Those certificates themselves, in PEM."),
    Key("ssl.client.auth", STRING, "none", OneOf(("required", "requested", "none")), MEDIUM, READ_ONLY,
        "Whether clients must show a certificate (required), may (requested), or need not (none)."),
    Key("ssl.enabled.protocols", LIST,
        ("TLSv1.2", "TLSv1.3"), ListOf(("TLSv1.2", "TLSv1.3"), empty_allowed=False), MEDIUM, READ_ONLY,
        "The versions of TLS that are offered."),
    Key("ssl.endpoint.identification.algorithm", STRING, "https", OneOf(("https", ""), ignore_case=True), LOW, READ_ONLY,
        "https checks the name in the certificate of a node we connect to; empty does not."),
)
# fmt: on
