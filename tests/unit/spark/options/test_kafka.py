"""The kafka.* options."""

from __future__ import annotations

import pytest

from strandline.client.config import ACKS_ALL
from strandline.client.core.backoff import Backoff
from strandline.records.compression import CompressionType
from strandline.spark.errors import OptionError
from strandline.spark.options import kafka_names
from strandline.spark.options.kafka import BATCH_SIZE, FETCH_BYTES, KafkaSettings, kafka_settings


def settings(writing: bool = False, /, **given: str) -> KafkaSettings:
    """Names with '_' for '.'."""
    options = {"bootstrap.servers": "broker:9092"} | {name.replace("_", "."): text for name, text in given.items()}
    return kafka_settings(options, writing=writing)


def test_brokers_as_addresses() -> None:
    found = settings(bootstrap_servers=" a:1 , [::1]:2,a:1 ").cluster
    assert found.bootstrap_servers == ("a:1", "[::1]:2")
    assert found.tls is None


@pytest.mark.parametrize("text", ["", " ", ",", "host", "host:0", "host:x"])
def test_brokers_that_are_none(text: str) -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        settings(bootstrap_servers=text)


def test_client_settings() -> None:
    config = settings(
        client_id="me",
        request_timeout_ms="1000",
        default_api_timeout_ms="2000",
        socket_connection_setup_timeout_ms="3000",
        metadata_max_age_ms="4000",
        retry_backoff_ms="5",
        retry_backoff_max_ms="50",
        reconnect_backoff_ms="9000",
    ).cluster.config
    assert config.client_id == "me"
    assert (config.request_timeout_ms, config.default_api_timeout_ms) == (1000, 2000)
    assert (config.connection_setup_timeout_ms, config.metadata_max_age_ms) == (3000, 4000)
    assert config.retry_backoff == Backoff(5, 50)
    assert config.reconnect_backoff == Backoff(9000, 9000)


def test_the_request_timeout_holds_for_consumer_and_producer_too() -> None:
    found = settings(request_timeout_ms="1000")
    assert (found.consumer.request_timeout_ms, found.producer.request_timeout_ms) == (1000, 1000)


def test_consumer_settings() -> None:
    config = settings(isolation_level="read_committed", fetch_max_bytes="5", check_crcs="false").consumer
    assert config.is_read_committed
    assert not config.check_crcs
    assert (config.fetch_max_bytes, config.max_partition_fetch_bytes) == (5, FETCH_BYTES)
    assert (config.group_id, config.enable_auto_commit, config.auto_offset_reset) == (None, False, "none")


def test_producer_settings() -> None:
    config = settings(True, acks="all", compression_type="zstd", compression_zstd_level="7", linger_ms="9").producer
    assert (config.acks, config.compression_type, config.compression_level) == (ACKS_ALL, CompressionType.ZSTD, 7)
    assert (config.linger_ms, config.batch_size) == (9, BATCH_SIZE)


def test_the_level_of_another_codec_is_not_used() -> None:
    assert settings(True, compression_type="gzip", compression_zstd_level="7").producer.compression_level is None


@pytest.mark.parametrize("name", sorted(kafka_names.FORBIDDEN))
@pytest.mark.parametrize("writing", [False, True])
def test_forbidden_ones_are_refused_by_name(name: str, writing: bool) -> None:
    with pytest.raises(OptionError, match=f"option 'kafka.{name}' is not supported: "):
        kafka_settings({"bootstrap.servers": "a:1", name: "x"}, writing=writing)


@pytest.mark.parametrize("name", sorted(kafka_names.HARMLESS))
def test_harmless_ones_are_warned_of_by_name(name: str) -> None:
    found = kafka_settings({"bootstrap.servers": "a:1", name: "x"}, writing=False)
    assert [warning.split("'")[1] for warning in found.warnings] == [f"kafka.{name}"]


def test_settings_of_the_other_side_are_warned_of() -> None:
    assert settings(acks="all").warnings == ("option 'kafka.acks' has no effect here: it is a setting of the sink",)
    assert settings(True, isolation_level="x").warnings == (
        "option 'kafka.isolation.level' has no effect here: it is a setting of the source",
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"fetch_max_byte": "1"}, "'kafka.fetch.max.byte' is unknown; did you mean 'kafka.fetch.max.bytes'?"),
        ({"zzz": "1"}, "'kafka.zzz' is unknown; it is no setting"),
        ({"fetch_max_bytes": "many"}, "'kafka.fetch.max.bytes' is a whole number"),
        ({"isolation_level": "all"}, "'kafka.isolation.level' is read_uncommitted or read_committed"),
        ({"sasl_mechanism": "PLAIN"}, "'kafka.sasl.mechanism' is not supported"),
        ({"security_protocol": "SASL_SSL"}, "'kafka.security.protocol' is PLAINTEXT or SSL; SASL_SSL is not"),
        ({"security_protocol": "TLS"}, "'kafka.security.protocol' is PLAINTEXT or SSL, not 'TLS'"),
        ({"ssl_truststore_location": "a.pem"}, "'kafka.ssl.truststore.location' needs 'kafka.security.protocol'"),
    ],
)
def test_what_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError) as refused:
        settings(**given)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"acks": "2"}, "'kafka.acks' is all or -1 or 0 or 1"),
        ({"compression_type": "brotli"}, "'kafka.compression.type' is none or gzip"),
        ({"compression_gzip_level": "10"}, "'kafka.compression.gzip.level' is at most 9"),
        ({"acks": "1", "enable_idempotence": "true"}, "contradict each other: enable.idempotence needs acks=-1"),
    ],
)
def test_what_a_sink_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError) as refused:
        settings(True, **given)
    assert says in str(refused.value)


def test_each_name_is_in_one_table_only() -> None:
    tables = [
        set(table)
        for table in (
            kafka_names.CLIENT,
            kafka_names.CONSUMER,
            kafka_names.PRODUCER,
            kafka_names.TLS,
            kafka_names.HARMLESS,
            kafka_names.FORBIDDEN,
            {kafka_names.REQUIRED, kafka_names.PROTOCOL},
        )
    ]
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_equal_settings_are_one_key_of_a_cache() -> None:
    assert len({settings(client_id="a").cluster, settings(client_id="a").cluster, settings(client_id="b").cluster}) == 2
