"""What Apache Kafka answers although a feature is unused, so do we: the same questions to both, Kafka's tools, MirrorMaker 2."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka import Consumer

from strandline.client import blocking
from strandline.client.flow.descriptions import ConfigEntry, ConfigResource, NewTopic, ResourceType
from strandline.config.alter import Alteration, Op
from strandline.config.broker import BROKER
from strandline.config.key import Treatment
from strandline.config.reference import DIFFERENT_DEFAULTS
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header
from tests.judges import mirror_maker
from tests.judges.java import Run, judge
from tests.system.local import strandline
from tests.system.server import Server, eventually, format_data, running
from tests.unit.config.test_broker import FROM_THE_NEXT_START

pytestmark = pytest.mark.java

PATIENCE_S = 120.0
TIMEOUT_S = 30.0
DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5


class Cluster(NamedTuple):
    """One node, and where it listens."""

    brokers: str
    controllers: str
    log: Path | None = None


def listening(properties: Path) -> Cluster:
    values = dict(line.split("=", 1) for line in properties.read_text().splitlines())
    at = dict(listener.split("://") for listener in values["listeners"].split(","))
    return Cluster(at["PLAINTEXT"], at["CONTROLLER"])


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    judge()
    directory = tmp_path_factory.mktemp("kafka")
    with kafka_cluster(1, directory=directory, heap="400m"):
        yield listening(directory / "1.properties")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("strandline")
    format_data(directory / "data")
    with running(directory, directory / "data") as server:
        yield server


@pytest.fixture
def ours(server: Server) -> Cluster:
    return listening(server.log.with_name("server.properties"))._replace(log=server.log)


# The same questions


def asked(address: str, api_key: int, version: int, fields: dict[str, Any]) -> Any:
    """The reply to a request on a connection of its own, in exactly this version; None if the connection ends instead."""
    body = messages.encode_request(api_key, version, messages.request(api_key)(**fields))
    frame = request_header(api_key, version, 1, "judge") + body
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection, connection.makefile("rb") as replies:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        size = replies.read(4)
        if not size:
            return None
        reply = replies.read(struct.unpack(">i", size)[0])
    _, position = read_response_header(api_key, version, reply)
    return messages.decode_response(api_key, version, reply, position)


_Acl = messages.request(30).AclCreation
_Filter = messages.request(31).DeleteAclsFilter
_Component = messages.request(48).ComponentData
_Quotas = messages.request(49)
_User = messages.request(50).UserName
_Deletion = messages.request(51).ScramCredentialDeletion


def component(kind: str, match_type: int = 2, match: str | None = None) -> Any:
    return _Component(entity_type=kind, match_type=match_type, match=match)


def removal(kind: str, name: str | None) -> Any:
    return _Quotas.EntryData(
        entity=[_Quotas.EntityData(entity_type=kind, entity_name=name)],
        ops=[_Quotas.OpData(key="producer_byte_rate", value=0.0, remove=True)],
    )


ANYWHERE: dict[int, tuple[range, list[dict[str, Any]]]] = {
    17: (range(2), [{"mechanism": "PLAIN"}, {"mechanism": ""}]),
    29: (range(1, 4), [{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}]),
    30: (
        range(1, 4),
        [
            {"creations": []},
            {
                "creations": [
                    _Acl(resource_type=2, resource_name="t", principal=name, host="*", operation=3, permission_type=3)
                    for name in ("User:a", "User:b")
                ]
            },
        ],
    ),
    31: (
        range(1, 4),
        [
            {"filters": []},
            {"filters": [_Filter(resource_type_filter=2, pattern_type_filter=3, operation=3, permission_type=3)] * 2},
        ],
    ),
    36: (range(3), [{"auth_bytes": b"x"}]),
    38: (range(1, 4), [{"max_lifetime_ms": 1000}]),
    39: (range(1, 3), [{"hmac": b"x", "renew_period_ms": 1}]),
    40: (range(1, 3), [{"hmac": b"x", "expiry_time_period_ms": 1}]),
    49: (
        range(2),
        [
            {"entries": []},
            *({"entries": [each]} for each in (removal("user", "a"), removal("user", None), removal("x", "a"))),
        ],
    ),
    51: (
        range(1),
        [
            {"deletions": [], "upsertions": []},
            {"deletions": [_Deletion(name="a", mechanism=1)], "upsertions": []},
            {"deletions": [_Deletion(name="", mechanism=1)], "upsertions": []},
        ],
    ),
}
"""Requests by key, in these versions, that brokers and controllers answer alike."""

BROKERS_ONLY: dict[int, tuple[range, list[dict[str, Any]]]] = {
    41: (range(1, 4), [{"owners": None}, {"owners": []}]),
    48: (
        range(2),
        [
            {"components": []},
            {"components": [component("user", 0, "a")], "strict": True},
            {"components": [component("client-id", 1)]},
            {"components": [component("ip", 0, "not an ip")]},
            {"components": [component("nonsense")]},
            {"components": [component("")]},
            {"components": [component("user"), component("user")]},
            {"components": [component("ip"), component("user")]},
            {"components": [component("user", 0)]},
            {"components": [component("user", 1, "x")]},
            {"components": [component("user", 2, "x")]},
            {"components": [component("user", 9)]},
        ],
    ),
    50: (
        range(1),
        [
            {"users": None},
            {"users": []},
            {"users": [_User(name="a")]},
            {"users": [_User(name="")]},
            {"users": [_User(name="a"), _User(name="a")]},
        ],
    ),
    66: (range(3), [{}, {"state_filters": ["Ongoing", "Nonsense", "Dead", "PrepareEpochFence"]}]),
}
"""Kafka's controllers answer these with an internal error, or not at all; ours as brokers do."""


@pytest.mark.parametrize("api_key", [*ANYWHERE, *BROKERS_ONLY])
def test_brokers_answer_as_kafkas(kafka: Cluster, ours: Cluster, api_key: int) -> None:
    versions, requests = (ANYWHERE | BROKERS_ONLY)[api_key]
    for version in versions:
        for fields in requests:
            theirs = asked(kafka.brokers, api_key, version, fields)
            assert theirs is not None
            assert asked(ours.brokers, api_key, version, fields) == theirs, (version, fields)


@pytest.mark.parametrize("api_key", ANYWHERE)
def test_controllers_answer_as_kafkas(kafka: Cluster, ours: Cluster, api_key: int) -> None:
    versions, requests = ANYWHERE[api_key]
    for version in versions:
        for fields in requests:
            theirs = asked(kafka.controllers, api_key, version, fields)
            assert theirs is not None
            assert asked(ours.controllers, api_key, version, fields) == theirs, (version, fields)


@pytest.mark.parametrize("pattern", ["(", "", "a.*"])
def test_patterns_of_transactional_ids(kafka: Cluster, ours: Cluster, pattern: str) -> None:
    fields = {"transactional_id_pattern": pattern}
    assert asked(ours.brokers, 66, 2, fields) == asked(kafka.brokers, 66, 2, fields)


def test_controllers_advertise_what_kafkas_do(kafka: Cluster, ours: Cluster) -> None:
    fields = {"client_software_name": "judge", "client_software_version": "1"}
    served = [
        {
            each.api_key: (each.min_version, each.max_version)
            for each in asked(cluster.controllers, 18, 4, fields).api_keys
        }
        for cluster in (kafka, ours)
    ]
    assert served[1] == served[0]


def test_what_brokers_advertise_is_in_kafkas_versions(kafka: Cluster, ours: Cluster) -> None:
    fields = {"client_software_name": "judge", "client_software_version": "1"}
    theirs, mine = (
        {each.api_key: (each.min_version, each.max_version) for each in asked(cluster.brokers, 18, 4, fields).api_keys}
        for cluster in (kafka, ours)
    )
    assert mine.items() <= theirs.items()
    assert theirs.keys() - mine.keys() == {*range(76, 80), *range(83, 93)}, (
        "share groups and streams groups are missing, nothing else"
    )


def test_the_wrong_kind_of_listener_is_named_as_by_kafka(kafka: Cluster, ours: Cluster) -> None:
    for version in range(3):
        for wanted in (1, 2, 3):
            fields = {"endpoint_type": wanted} if version else {}
            for their, mine in ((kafka.brokers, ours.brokers), (kafka.controllers, ours.controllers)):
                theirs, answer = asked(their, 60, version, fields), asked(mine, 60, version, fields)
                assert (answer.error_code, answer.endpoint_type) == (theirs.error_code, theirs.endpoint_type)
                assert (answer.error_message or "").startswith(theirs.error_message or "")
                assert ("; bootstrap." in (answer.error_message or "")) == (answer.error_code in (42, 114))


def test_our_commands_say_which_option_an_address_belongs_in(ours: Cluster) -> None:
    topics = ("topics", "list", "-b", ours.controllers)
    assert strandline(*topics, code=1) == (
        f"strandline: {ours.controllers} is a controller's listener: give --bootstrap-server a broker's address; "
        "commands that controllers answer take theirs as --bootstrap-controller (MISMATCHED_ENDPOINT_TYPE)\n"
    )
    quorum = ("quorum", "describe", "--bootstrap-controller", ours.brokers)
    assert strandline(*quorum, code=1) == (
        f"strandline: {ours.brokers} is a broker's listener, not a controller's: give it as --bootstrap-server "
        "(MISMATCHED_ENDPOINT_TYPE)\n"
    )


# Configuration


class Row(NamedTuple):
    value: str | None
    read_only: bool
    source: int
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...]


def rows(cluster: Cluster, kind: ResourceType, name: str) -> dict[str, Row]:
    resource = ConfigResource(kind, name)
    with blocking.Client(cluster.brokers) as client:
        entries = blocking.Admin(client).describe_configs([resource], include_synonyms=True)[resource]
    assert not isinstance(entries, Exception), entries
    return {entry.name: _row(entry) for entry in entries}


def _row(entry: ConfigEntry) -> Row:
    synonyms = tuple((name, value, int(source)) for name, value, source in entry.synonyms)
    return Row(entry.value, entry.read_only, int(entry.source), entry.is_sensitive, synonyms)


ONLY_OURS = {
    "metrics.listener",
    "metrics.allowed.hosts",
    "watchdog.timeout.ms",
    "previous.inter.broker.listener.name",
    "queued.max.response.bytes",
    "queued.max.response.bytes.per.connection",
    "socket.receive.stalled.timeout.ms",
    "socket.send.stalled.timeout.ms",
    "ssl.handshake.timeout.ms",
    "group.config.max.resources",
    "group.consumer.max.regexes",
    "group.coordinator.max.groups.per.partition",
    "producer.id.max.per.partition",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
}
"""Keys of our own; the throttles Kafka lists only once they are set."""
GIVEN = {"listeners", "log.dirs", "controller.quorum.voters"}
"""Each node's own addresses and directories."""


def test_a_broker_is_described_key_by_key_as_kafkas(kafka: Cluster, ours: Cluster) -> None:
    theirs, mine = rows(kafka, ResourceType.BROKER, "1"), rows(ours, ResourceType.BROKER, "1")
    assert mine.keys() - theirs.keys() == ONLY_OURS
    assert theirs.keys() - mine.keys() == set()
    static = {name for name in theirs if {theirs[name].source, mine[name].source} - {DEFAULT_CONFIG}}
    assert {"node.id", "broker.id", *GIVEN} <= static
    for name in ("node.id", "broker.id"):
        assert mine[name] == theirs[name]
    for name in theirs.keys() - static:
        expected = theirs[name]
        if BROKER[name].treatment is Treatment.REFUSED or name in FROM_THE_NEXT_START:
            expected = expected._replace(read_only=True)
        if name in DIFFERENT_DEFAULTS:
            default = mine[name].value
            expected = expected._replace(value=default, synonyms=((name, default, DEFAULT_CONFIG),))
        assert mine[name] == expected, name


def test_a_topic_is_described_key_by_key_as_kafkas(kafka: Cluster, ours: Cluster) -> None:
    configs = {
        "preallocate": "true",
        "local.retention.ms": "5",
        "remote.log.copy.disable": "true",
        "remote.log.delete.on.disable": "true",
        "retention.ms": "7",
        "min.insync.replicas": "1",
        "remote.storage.enable": "false",
    }
    described = []
    for cluster in (kafka, ours):
        with blocking.Client(cluster.brokers) as client:
            made = blocking.Admin(client).create_topics([NewTopic("described", 1, 1, configs=configs)])
            assert not isinstance(made["described"], Exception), made
        described.append(rows(cluster, ResourceType.TOPIC, "described"))
    theirs, mine = described
    # Kafka's file names it too.
    synonyms = tuple(
        synonym for synonym in theirs["min.insync.replicas"].synonyms if synonym[2] != STATIC_BROKER_CONFIG
    )
    theirs["min.insync.replicas"] = theirs["min.insync.replicas"]._replace(synonyms=synonyms)
    assert mine == theirs


# Groups


def test_a_pattern_of_the_consumer_protocol_finds_internal_topics(kafka: Cluster, ours: Cluster) -> None:
    found = []
    for cluster in (kafka, ours):
        consumer = Consumer(
            {"bootstrap.servers": cluster.brokers, "group.id": "by-pattern", "group.protocol": "consumer"}
        )
        try:
            consumer.subscribe(["^__consumer.*"])

            def owned(consumer: Consumer = consumer) -> set[str]:
                consumer.poll(0.1)
                return {each.topic for each in consumer.assignment()}

            found.append(eventually(lambda owned=owned: owned(), f"{cluster.brokers} assigns topics", PATIENCE_S))
        finally:
            consumer.close()
    assert found == [{"__consumer_offsets"}] * 2


# Kafka's own tools


def test_kafkas_tools_get_along_without_the_features(ours: Cluster, tmp_path: Path) -> None:
    empty = tmp_path / "client.properties"
    empty.write_text("")
    at = ("--bootstrap-server", ours.brokers)
    tools = "org.apache.kafka.tools."
    users = ("--entity-type", "users")
    produced = (
        "--topic",
        "t",
        "--num-records",
        "1",
        "--record-size",
        "9",
        "--throughput",
        "-1",
        "--transactional-id",
        "t",
    )
    runs = [
        Run(f"{tools}AclCommand", (*at, "--list")),
        Run("kafka.admin.ConfigCommand", (*at, "--describe", *users)),
        Run(
            "kafka.admin.ConfigCommand",
            (*at, "--alter", *users, "--entity-name", "a", "--add-config", "producer_byte_rate=1"),
        ),
        Run(
            "kafka.admin.ConfigCommand",
            (*at, "--alter", *users, "--entity-name", "a", "--add-config", "SCRAM-SHA-256=[password=x]"),
        ),
        Run(f"{tools}TransactionsCommand", (*at, "list")),
        Run(f"{tools}TransactionsCommand", (*at, "find-hanging", "--broker-id", "1")),
        Run(f"{tools}DelegationTokenCommand", (*at, "--command-config", str(empty), "--describe")),
        Run(f"{tools}ProducerPerformance", (*produced, "--command-property", f"bootstrap.servers={ours.brokers}")),
        Run(f"{tools}MetadataQuorumCommand", ("--bootstrap-controller", ours.brokers, "describe", "--status")),
        Run(f"{tools}TopicCommand", ("--bootstrap-server", ours.controllers, "--list")),
    ]
    acls, described, quota, scram, listed, hanging, tokens, transactional, controllers, topics = judge().run_all(runs)
    assert "No Authorizer is configured on the broker" in acls.out + acls.err
    assert (described.code, described.out.strip()) == (0, "")
    assert "client quotas are not enforced yet" in quota.out + quota.err
    assert "SASL listeners are not served yet" in scram.out + scram.err
    assert listed.code == 0
    assert (hanging.code, len(hanging.out.strip().splitlines())) == (0, 1), "a heading and no transaction"
    assert "UnsupportedByAuthenticationException" in tokens.out + tokens.err
    assert "1 records sent" in transactional.out
    assert "bootstrap.servers is the client's option for this address" in controllers.out + controllers.err
    assert "does not support METADATA" in topics.out + topics.err


# MirrorMaker 2

COPIED = {
    "plain": {},
    "tuned": {"retention.ms": "123456", "cleanup.policy": "compact,delete", "max.message.bytes": "54321"},
    "tiered": {
        "retention.ms": "654321",
        "local.retention.ms": "1000",
        "local.retention.bytes": "2000",
        "remote.log.copy.disable": "true",
    },
    "allocated": {"preallocate": "true", "segment.bytes": "2097152"},
}


def own_configs(admin: blocking.Admin, topic: str) -> dict[str, str | None] | None:
    """What was set for the topic itself; None while it is not there."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource]
    if isinstance(entries, Exception):
        return None
    return {entry.name: entry.value for entry in entries if entry.source == DYNAMIC_TOPIC_CONFIG}


def test_a_mirrored_topic_keeps_its_configuration(kafka: Cluster, ours: Cluster, tmp_path: Path) -> None:
    with (
        blocking.Client(kafka.brokers) as from_,
        blocking.Client(ours.brokers) as to,
        mirror_maker.mirroring(tmp_path, kafka.brokers, ours.brokers, "|".join(COPIED)) as log,
    ):
        source, target = blocking.Admin(from_), blocking.Admin(to)
        made = source.create_topics([NewTopic(name, 2, 1, configs=configs) for name, configs in COPIED.items()])
        assert not [answer for answer in made.values() if isinstance(answer, Exception)]

        def arrive(expected: dict[str, dict[str, str]], what: str) -> None:
            def found() -> dict[str, dict[str, str | None] | None]:
                return {name: own_configs(target, f"source.{name}") for name in expected}

            try:
                eventually(lambda: found() == expected, what, PATIENCE_S)
            except AssertionError as error:
                tail = log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"{error}; the copies have {found()}\n{tail}") from None

        arrive(COPIED, "every topic is there with its configuration")
        resource = ConfigResource(ResourceType.TOPIC, "tiered")
        changes = [
            Alteration("retention.ms", Op.SET, "777"),
            Alteration("preallocate", Op.SET, "true"),
            Alteration("local.retention.ms", Op.DELETE, None),
        ]
        assert source.alter_configs({resource: changes}) == {resource: None}
        changed = {**COPIED["tiered"], "retention.ms": "777", "preallocate": "true"}
        del changed["local.retention.ms"]
        arrive({**COPIED, "tiered": changed}, "a change of the source arrives")
    assert ours.log is not None
    assert "topic source.tiered: preallocate=true has no effect" in ours.log.read_text()
