"""One node's configuration as a whole."""

# mypy: disable-error-code="operator"

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from strandline.config.broker import BROKER
from strandline.config.describe import describe_broker
from strandline.config.errors import ConfigError
from strandline.config.key import REQUIRED, Treatment
from strandline.config.layers import ConfigSource
from strandline.config.node import NodeConfig
from strandline.config.properties import load, of

COMBINED = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
}
BROKER_ONLY = COMBINED | {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"}
CONTROLLER_ONLY = COMBINED | {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9093"}

STOCK = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def build(texts: dict[str, str], *, insecure: bool = False) -> NodeConfig:
    return NodeConfig.build(of(texts, "here"), insecure=insecure)


def test_the_settings_of_a_stock_kafka_file_start_with_warnings_only(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(STOCK)
    config = NodeConfig.build(load(str(path)))
    assert (config.node_id, config.broker, config.controller, config.log_dirs) == (
        1,
        True,
        True,
        ("/tmp/kraft-combined-logs",),
    )
    assert [listener.host for listener in config.listeners] == ["127.0.0.1", "127.0.0.1"]
    assert len(config.warnings) == 8
    assert "PLAINTEXT serves clients and brokers alike" in config.warnings[-1]
    assert config.metadata_log_dir == "/tmp/kraft-combined-logs"


@pytest.mark.parametrize("texts", [COMBINED, BROKER_ONLY, CONTROLLER_ONLY])
def test_the_three_kinds_of_nodes(texts: dict[str, str]) -> None:
    config = build(texts)
    assert len(config.warnings) == config.broker
    assert config.inter_broker_listener == "PLAINTEXT"


TWO_LISTENERS = COMBINED | {
    "listeners": "PLAINTEXT://127.0.0.1:9092,broker://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKER",
}


@pytest.mark.parametrize(
    ("changes", "brokers", "warning"),
    [
        ({}, {"BROKER", "CONTROLLER"}, None),
        ({"inter.broker.listener.name": "plaintext"}, {"PLAINTEXT", "CONTROLLER"}, None),
        (
            {"previous.inter.broker.listener.name": "plaintext"},
            {"BROKER", "PLAINTEXT", "CONTROLLER"},
            "any client can act as a broker on PLAINTEXT; remove it once every broker was restarted",
        ),
    ],
)
def test_sec_t6_who_may_act_as_a_broker_is_decided_by_the_listener(
    changes: dict[str, str], brokers: set[str], warning: str | None
) -> None:
    config = build(TWO_LISTENERS | changes)
    assert {listener.name for listener in config.listeners if config.may_act_as_broker(listener.name)} == brokers
    assert [warning in told for told in config.warnings] == [True] * bool(warning)


def test_sec_t7_one_listener_for_clients_and_brokers_is_warned_of() -> None:
    config = build(COMBINED)
    assert config.may_act_as_broker("PLAINTEXT")
    [warning] = config.warnings
    assert "any client can act as a broker" in warning
    assert "inter.broker.listener.name" in warning


@pytest.mark.parametrize("name", ["BROKER", "CONTROLLER", "ELSEWHERE"])
def test_the_previous_listener_of_brokers_is_another_one_of_theirs(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"previous.inter.broker.listener.name must be another of the broker's listeners"
    ):
        build(TWO_LISTENERS | {"previous.inter.broker.listener.name": name})


@pytest.mark.parametrize("name", [key.name for key in BROKER.values() if key.default is REQUIRED])
def test_what_must_be_given_is_asked_for(name: str) -> None:
    with pytest.raises(ConfigError, match=f'Missing required configuration "{name}"'):
        build({key: text for key, text in COMBINED.items() if key != name})


def test_the_old_name_of_the_node_id_still_counts() -> None:
    texts = {name: text for name, text in COMBINED.items() if name != "node.id"}
    assert build(texts | {"broker.id": "7"}).node_id == 7
    with pytest.raises(ConfigError, match=r"here: node.id and broker.id must be the same"):
        build(COMBINED | {"broker.id": "7"})
    with pytest.raises(ConfigError, match=r"node.id must be 0 or more"):
        build(texts | {"broker.id": "-1"})


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (
            COMBINED | {"listeners": "PLAINTEXT://127.0.0.1:9092"},
            "controller.listener.names must all appear in listeners",
        ),
        (COMBINED | {"process.roles": "broker"}, "must not appear in listeners"),
        (COMBINED | {"process.roles": "controller"}, "listeners must only hold controller.listener.names"),
        (CONTROLLER_ONLY | {"process.roles": "broker,controller"}, "inter.broker.listener.name must be one of"),
        (COMBINED | {"process.roles": "zookeeper"}, "String must be one of: broker, controller"),
        (COMBINED | {"inter.broker.listener.name": "CONTROLLER"}, "inter.broker.listener.name must be one of"),
        (
            COMBINED | {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "not both",
        ),
        (COMBINED | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "CONTROLLER has no protocol"),
        (COMBINED | {"controller.quorum.bootstrap.servers": ""}, "where the controllers are"),
        (
            COMBINED | {"replica.lag.time.max.ms": "100"},
            r"here: replica.fetch.wait.max.ms \(500\) must not be greater than",
        ),
        (COMBINED | {"queued.max.request.bytes": "5"}, "must not be less than socket.request.max.bytes"),
        (COMBINED | {"log.retention.hours": "0"}, "Value must be at least 1"),
        (
            COMBINED | {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093"},
            "here: listeners: PLAINTEXT would be",
        ),
    ],
)
def test_contradictions_are_refused(texts: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        build(texts)


def test_a17_no_authorizer_is_accepted_that_would_not_guard_who_fetches_as_a_replica() -> None:
    """Without one everybody may, as in Kafka; whoever names one must not believe that it guards anything."""
    kafkas = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name"):
        build(COMBINED | {"authorizer.class.name": kafkas})


def test_insecure_is_a_decision_of_the_operator() -> None:
    texts = COMBINED | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}
    assert [listener.host for listener in build(texts, insecure=True).listeners] == ["", ""]


def test_an_ssl_listener_carries_its_tls() -> None:
    config = build(
        COMBINED
        | {
            "listeners": "PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9094,CONTROLLER://127.0.0.1:9093",
            "advertised.listeners": "SSL://broker-1:9094",
            "ssl.keystore.location": "/etc/node.pem",
        }
    )
    listener = config.listener("SSL")
    assert listener is not None
    assert listener.tls is not None
    assert (listener.advertised_host, listener.tls.keystore_location) == ("broker-1", "/etc/node.pem")


def test_a_java_key_store_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match=r"ssl.keystore.type: Only PEM is read; convert with 'keytool"):
        build(COMBINED | {"ssl.keystore.type": "JKS"})


def test_our_stated_defaults() -> None:
    config = build(COMBINED)
    assert (config.broker_session_timeout_ms, config.broker_heartbeat_interval_ms) == (3000, 500)
    assert "should be at most half" in build(COMBINED | {"broker.heartbeat.interval.ms": "2000"}).warnings[-1]


def test_txn_q1_two_phase_commit_needs_both_keys() -> None:
    allowed, served = {"transaction.two.phase.commit.enable": "true"}, {"unstable.api.versions.enable": "true"}
    assert "no producer can ask for it" in build(COMBINED | allowed).warnings[-1]
    for keys in ({}, served, allowed | served):
        config = build(COMBINED | keys)
        assert not any("two.phase" in warning for warning in config.warnings)
        found = (config.transaction_two_phase_commit_enable, config.unstable_api_versions_enable)
        assert found == (len(keys) == 2, bool(keys))


def test_dynamic_values_make_a_new_configuration() -> None:
    before = build(COMBINED | {"max.connections": "10", "log.retention.hours": "1"})
    after = before.with_dynamic({"max.connections": "20", "log.retention.ms": "5"}, {"max.connections": "30"})
    assert (before.max_connections, after.max_connections) == (10, 30)
    assert (before.topic_config().retention_ms, after.topic_config().retention_ms) == (3_600_000, 5)
    assert after.topic_config({"retention.ms": "7"}).retention_ms == 7
    assert (after.node_id, after.listeners) == (before.node_id, before.listeners)


TYPES = {
    "int": "INT LONG SHORT",
    "int | None": "INT LONG",
    "bool": "BOOLEAN",
    "str": "STRING",
    "str | None": "STRING",
    "tuple[str, ...]": "LIST",
}


def test_attributes_have_the_types_of_their_keys() -> None:
    for field in fields(NodeConfig):
        key = BROKER.get(field.name.replace("_", "."))
        if key is not None and field.name != "listeners" and field.name != "metadata_log_dir":
            assert key.type.name in TYPES[str(field.type)].split(), field.name
            assert key.treatment is Treatment.HONOURED


def test_every_honoured_key_is_used() -> None:
    elsewhere = {name for name in BROKER if name.startswith(("log.", "compression.", "ssl.", "controller.quorum."))} | {
        "advertised.listeners",
        "broker.id",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "previous.inter.broker.listener.name",
        "internal.metadata.log.segment.bytes",
        "listener.security.protocol.map",
        "message.max.bytes",
        "min.insync.replicas",
        "process.roles",
        "security.inter.broker.protocol",
        "unclean.leader.election.enable",
    }
    names = {field.name.replace("_", ".") for field in fields(NodeConfig)}
    honoured = {key.name for key in BROKER.values() if key.treatment is Treatment.HONOURED}
    assert honoured - names - elsewhere == set()


def test_a_configuration_does_not_show_its_secrets() -> None:
    config = build(COMBINED | {"ssl.key.password": "hunter2"})
    assert "hunter2" not in repr(config)


def test_either_id_is_described_under_both_names() -> None:
    for given in ("node.id", "broker.id"):
        texts = {name: text for name, text in COMBINED.items() if name != "node.id"} | {given: "1"}
        rows = {row.name: row for row in describe_broker(build(texts).layers, ["node.id", "broker.id"])}
        assert {name: (row.value, row.source) for name, row in rows.items()} == dict.fromkeys(
            ("node.id", "broker.id"), ("1", ConfigSource.STATIC_BROKER_CONFIG)
        )
