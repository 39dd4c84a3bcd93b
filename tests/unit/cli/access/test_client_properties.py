# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import click
import pytest

from strandline.cli.access.client_properties import (
    ClientProperty,
    connection_settings,
    for_consumer,
    for_producer,
    from_file,
    from_flag,
)
from strandline.cli.access.options import Access
from strandline.cli.errors import CommandRefused
from strandline.records.compression import CompressionType

SERVER = Access("127.0.0.1:9092")


def producer(**properties):
    given = {name.replace("_", "."): text for name, text in properties.items()}
    return for_producer(SERVER, from_flag(given, "--property"))[1]


@pytest.fixture
def file(tmp_path):
    def write(*lines: str) -> str:
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def test_kafkas_names_and_values():
    config = producer(acks="all", linger_ms="10", compression_type="zstd", batch_size="5")
    assert (config.acks, config.linger_ms, config.compression_type, config.batch_size) == (
        -1,
        10,
        CompressionType.ZSTD,
        5,
    )
    assert producer(acks="1", enable_idempotence="false").idempotent is False
    _, consumer = for_consumer(SERVER, from_flag({"isolation.level": "read_committed"}, "--property"))
    assert consumer.is_read_committed


def test_a_codecs_level_counts_with_that_codec():
    assert producer(compression_type="zstd", compression_zstd_level="3").compression_level == 3
    assert producer(compression_type="gzip", compression_zstd_level="3").compression_level is None


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"interceptor.classes": "x"}, "interceptor.classes is not a supported producer property; these are"),
        ({"isolation.level": "read_committed"}, "isolation.level is not a supported producer property"),
        ({"client.idd": "x"}, r"did you mean client\.id\?"),
        ({"compression.level": "3"}, "compression.level is not a supported producer property"),
        ({"compression.zstd.level": "23"}, "compression.zstd.level=23 is not a value"),
        ({"acks": "2"}, "acks=2 is not a value"),
        ({"linger.ms": "soon"}, "linger.ms=soon is not a value"),
        ({"linger.ms": "1_0"}, "linger.ms=1_0 is not a value"),
        ({"request.timeout.ms": "-1"}, "request.timeout.ms=-1 is not a value"),
        ({"acks": "1", "enable.idempotence": "true"}, "enable.idempotence needs acks"),
        ({"security.protocol": "TLS"}, "security.protocol=TLS is none of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL"}, "security.protocol=SASL_SSL: SASL is not supported yet"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism: SASL is not supported yet"),
        ({"ssl.truststore.location": "/ca.pem"}, "ssl.truststore.location has no effect without security.protocol=SSL"),
        ({"ssl.truststore.password": "secret"}, "ssl.truststore.password belongs to Java's stores"),
        ({"key.serializer": "org.example.Avro"}, "the Java class org.example.Avro cannot be loaded"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(properties, reason):
    with pytest.raises(click.UsageError, match=reason) as caught:
        for_producer(SERVER, from_flag(properties, "--property"))
    assert "secret" not in str(caught.value)


def test_a_value_is_named_as_kafka_names_it():
    with pytest.raises(click.UsageError, match=r"auto.offset.reset is 'earliest', 'latest' or 'none', not 'read_x'"):
        for_consumer(SERVER, from_flag({"auto.offset.reset": "read_x"}, "--property"))


def test_a_wrong_file_is_reported_with_its_line_and_is_not_wrong_usage(file):
    path = file("# mine", "client.id=me", "acks=all")
    with pytest.raises(CommandRefused, match=r"client\.properties:3: acks is not a supported client property"):
        connection_settings(Access("127.0.0.1:9092", path))


def test_the_file_says_how_to_reach_the_cluster(file):
    path = file("bootstrap.servers=broker:1", "client.id=me", "request.timeout.ms=7", "default.api.timeout.ms=8")
    found = connection_settings(Access(None, path, "127.0.0.1:9092"))
    assert found.bootstrap_server == "broker:1"
    assert (found.config.client_id, found.config.request_timeout_ms, found.config.default_api_timeout_ms) == (
        "me",
        7,
        8,
    )
    assert found.tls is None
    assert connection_settings(Access("typed:2", path, "127.0.0.1:9092")).bootstrap_server == "typed:2"


def test_without_a_file_the_fallback_counts_and_without_that_it_is_wrong_usage():
    assert connection_settings(Access(None, None, "here:1")).bootstrap_server == "here:1"
    with pytest.raises(click.UsageError, match="Missing option '--bootstrap-server'"):
        connection_settings(Access())


def test_what_only_tunes_the_jvm_is_let_through_with_a_warning(file, capsys):
    connection_settings(Access("127.0.0.1:9092", file("metrics.num.samples=2")))
    assert "client.properties:1: metrics.num.samples has no effect" in capsys.readouterr().err


def test_classes_that_do_what_happens_anyway_are_accepted():
    producer(key_serializer="org.apache.kafka.common.serialization.StringSerializer")
    with pytest.raises(click.UsageError, match=r"key.serializer is not a supported consumer property"):
        for_consumer(SERVER, from_flag({"key.serializer": "x"}, "--property"))


def test_the_last_of_two_counts_with_a_warning(file, capsys):
    path = file("client.id=one", "client.id=two")
    assert from_file(path)["client.id"] == ClientProperty("two", f"{path}:2")
    assert "was already given" in capsys.readouterr().err


def test_ssl_makes_a_context_that_checks(file):
    found = connection_settings(Access("127.0.0.1:9092", file("security.protocol=ssl")))
    assert found.tls is not None
    assert found.tls.check_hostname


def test_a_missing_trust_store_is_reported_with_its_line(file):
    path = file("security.protocol=SSL", "ssl.truststore.location=/nowhere/ca.pem")
    with pytest.raises(CommandRefused, match=r"client\.properties:2: ssl\.truststore\.location /nowhere/ca\.pem"):
        connection_settings(Access("127.0.0.1:9092", path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cooperative-sticky", ("cooperative-sticky",)),
        (
            "org.apache.kafka.clients.consumer.RangeAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            ("range", "cooperative-sticky"),
        ),
    ],
)
def test_assignors_by_their_names_and_by_their_java_classes(text, expected):
    _, consumer = for_consumer(SERVER, from_flag({"partition.assignment.strategy": text}, "--property"))
    assert consumer.partition_assignment_strategy == expected


def test_an_assignor_that_is_not_there_is_refused():
    with pytest.raises(click.UsageError, match=r"partition\.assignment\.strategy"):
        for_consumer(SERVER, from_flag({"partition.assignment.strategy": "com.example.Mine"}, "--property"))
