"""Rows for DescribeConfigs."""

from __future__ import annotations

from pathlib import Path

from strandline.config.describe import describe_broker, describe_broker_default, describe_topic
from strandline.config.layers import ConfigSource, Layers
from strandline.config.types import Type


def test_a_topics_value_names_its_source_and_synonyms() -> None:
    layers = Layers({"log.retention.hours": "1"}, {"log.retention.ms": "9"})
    (row,) = describe_topic(layers, {"retention.ms": "5"}, ["retention.ms"])
    assert (row.value, row.source, row.read_only, row.type) == ("5", ConfigSource.TOPIC_CONFIG, False, Type.LONG)
    assert [(s.name, s.value, int(s.source)) for s in row.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "9", 3),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_default_is_a_default() -> None:
    (row,) = describe_topic(Layers(), {}, ["cleanup.policy"])
    assert (row.value, row.is_default, row.source) == ("delete", True, ConfigSource.DEFAULT_CONFIG)
    assert row.documentation.startswith("What happens to old segments")


def test_hours_show_as_milliseconds_and_as_a_default_as_in_kafka() -> None:
    (row,) = describe_topic(Layers({"log.retention.hours": "1"}), {}, ["retention.ms"])
    assert (row.value, row.source, row.synonyms) == ("3600000", ConfigSource.DEFAULT_CONFIG, ())


def test_a_topic_has_the_rows_of_kafka() -> None:
    kafka = Path(__file__).with_name("kafka_keys.tsv").read_text().splitlines()
    expected = {line.split("\t")[1] for line in kafka if line.startswith("topic")} - {"internal.segment.bytes"}
    rows = {row.name: row for row in describe_topic(Layers(), {})}
    assert set(rows) == expected
    assert rows["remote.storage.enable"].value == "false"
    assert not [row for row in rows.values() if row.read_only]


def test_what_has_no_effect_is_described_as_it_was_set() -> None:
    (row,) = describe_topic(Layers({"log.preallocate": "false"}), {"preallocate": "true"}, ["preallocate"])
    assert (row.value, row.source, row.read_only) == ("true", ConfigSource.TOPIC_CONFIG, False)
    assert [(s.name, s.value, int(s.source)) for s in row.synonyms] == [
        ("preallocate", "true", 1),
        ("log.preallocate", "false", 4),
        ("log.preallocate", "false", 5),
    ]


def test_a_broker_shows_what_it_refuses_at_its_default_and_read_only() -> None:
    rows = {row.name: row for row in describe_broker(Layers())}
    for name, value in (
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("authorizer.class.name", ""),
        ("sasl.jaas.config", None),
    ):
        assert (rows[name].value, rows[name].read_only, rows[name].is_default) == (value, True, True), name


def test_a_broker_lists_no_key_that_kafka_keeps_to_itself() -> None:
    rows = {row.name for row in describe_broker(Layers())}
    assert not rows & {"internal.metadata.delete.delay.millis", "group.streams.assignors", "log.initial.task.delay.ms"}


def test_secrets_are_never_shown() -> None:
    (row,) = describe_broker(Layers({"ssl.key.password": "hunter2"}), ["ssl.key.password"])
    assert (row.value, row.sensitive, row.source) == (None, True, ConfigSource.STATIC_BROKER_CONFIG)
    assert "hunter2" not in repr(describe_broker(Layers({"ssl.key.password": "hunter2"})))


def test_a_broker_key_in_other_units_hides_behind_its_own() -> None:
    layers = Layers({"log.retention.ms": "5", "log.retention.hours": "1"})
    (row,) = describe_broker(layers, ["log.retention.hours"])
    assert (row.value, row.read_only, [s.name for s in row.synonyms]) == (
        "1",
        True,
        ["log.retention.hours", "log.retention.hours"],
    )


def test_what_is_dynamic_is_not_read_only() -> None:
    rows = {row.name: row for row in describe_broker(Layers({}, {"max.connections": "7"}))}
    assert (rows["max.connections"].value, rows["max.connections"].read_only) == ("7", False)
    assert rows["max.connections"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert rows["node.id"].read_only


def test_the_clusters_default_shows_only_what_was_set() -> None:
    rows = describe_broker_default(Layers({"num.partitions": "3"}, {"max.connections": "7"}))
    assert [(row.name, row.value) for row in rows] == [("max.connections", "7")]
