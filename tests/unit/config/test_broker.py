"""The table beside Kafka's own: kafka_keys.tsv is what Kafka 4.3.1 says of itself (tests/judges/ConfigKeys.java prints it)."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.broker import BROKER, unknown
from strandline.config.key import REQUIRED, Importance, Key, Treatment
from strandline.config.reference import DIFFERENT_DEFAULTS
from strandline.config.topic import TOPIC
from strandline.config.types import show

KAFKA = [line.split("\t") for line in Path(__file__).with_name("kafka_keys.tsv").read_text().splitlines()]
TABLES = {"broker": BROKER, "topic": TOPIC}


def ours(where: str, name: str) -> Key:
    return TABLES[where][name]


def test_every_key_of_kafka_is_known() -> None:
    assert [name for where, name, *_ in KAFKA if name not in TABLES[where]] == []


def test_types_and_importance_are_kafkas() -> None:
    for where, name, type_, _, importance, _ in KAFKA:
        assert (ours(where, name).type.name, ours(where, name).importance) == (type_, Importance[importance]), name


def test_defaults_are_kafkas_but_for_the_stated_ones() -> None:
    for where, name, _, default, *_ in KAFKA:
        key = ours(where, name)
        text = "<required>" if key.default is REQUIRED else show(key.default_value)
        text = "<null>" if text is None else text
        if where == "broker" and name in DIFFERENT_DEFAULTS:
            assert default == DIFFERENT_DEFAULTS[name][0], name
            assert text != default, name
        else:
            assert text == default, name


def test_a_key_that_changes_at_run_time_does_so_in_kafka_too() -> None:
    for where, name, *_, dynamic in KAFKA:
        if where == "broker" and ours(where, name).dynamic.value != "read-only":
            assert ours(where, name).dynamic.value == dynamic, name


FROM_THE_NEXT_START = {
    *("listeners", "listener.security.protocol.map", "ssl.client.auth", "ssl.enabled.protocols", "ssl.key.password"),
    *("ssl.endpoint.identification.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key"),
    *("ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location"),
    "ssl.truststore.type",
}
"""What Kafka takes at run time and we only with a start."""


def test_whatever_changes_at_run_time_in_kafka_does_so_here_unless_it_is_refused() -> None:
    differs = {
        name
        for where, name, *_, dynamic in KAFKA
        if where == "broker" and ours(where, name).dynamic.value != dynamic
        if ours(where, name).treatment is not Treatment.REFUSED
    }
    assert differs == FROM_THE_NEXT_START


def test_the_defaults_topics_inherit_can_all_change_at_run_time() -> None:
    for key in TOPIC.values():
        if key.synonyms:
            assert BROKER[key.synonyms[0][0]].dynamic.value == "cluster-wide", key.name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("num.partition", "Unknown broker config name: num.partition (did you mean num.partitions?)"),
        ("qwertz", "Unknown broker config name: qwertz"),
        ("zookeeper.connect", "there is no ZooKeeper"),
        ("inter.broker.protocol.version", "was removed in Kafka 4"),
    ],
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    assert hint in unknown(name, BROKER, "broker").message


def test_a_key_is_refused_or_ignored_for_a_reason_people_can_read() -> None:
    reasons = {key.doc for key in BROKER.values() if key.treatment is not Treatment.HONOURED}
    assert len(reasons) < 25  # families, not one excuse per key
