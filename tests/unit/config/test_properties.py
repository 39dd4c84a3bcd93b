"""Files, environment names and overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.errors import ConfigError
from strandline.config.properties import environment_key, load, of, read_environment, read_file


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.properties"
    path.write_text(text)
    return str(path)


def test_an_override_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "num.partitions=1\ndefault.replication.factor=1\nlog.dir=/a\n")
    environment = {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_DEFAULT_REPLICATION_FACTOR": "2", "PATH": "/bin"}
    properties = load(path, environment, ["num.partitions = 3"])
    assert properties.texts() == {"num.partitions": "3", "default.replication.factor": "2", "log.dir": "/a"}
    assert properties.where("log.dir") == f"{path}:3"
    assert properties.where("num.partitions") == "--override num.partitions"
    assert properties.where("default.replication.factor") == "environment KAFKA_DEFAULT_REPLICATION_FACTOR"


def test_the_line_of_a_mistake_is_named_also_after_a_continued_line(tmp_path: Path) -> None:
    path = write(
        tmp_path, "# a comment\nlisteners=PLAINTEXT://127.0.0.1:1,\\\n    SSL://127.0.0.1:2\n\nnum.partitions=many\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert (
        str(caught.value) == f"{path}:5: Invalid value many for configuration num.partitions: Not a number of type INT"
    )


def test_an_unknown_key_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "num.partition=3\n")
    with pytest.raises(
        ConfigError, match=r"server.properties:1: Unknown broker config name.*did you mean num.partitions\?"
    ):
        load(path)


def test_a_missing_file_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"nowhere.properties: cannot be read: No such file"):
        load("nowhere.properties")


def test_a_bad_escape_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"x:2: cannot be read as properties"):
        read_file("a=1\nb=\\u12\n", "x")


def test_the_last_of_two_counts_with_a_warning(tmp_path: Path) -> None:
    properties = load(write(tmp_path, "num.partitions=1\nnum.partitions=2\n"))
    assert properties.texts() == {"num.partitions": "2"}
    assert "server.properties:2: num.partitions was already given at" in properties.warnings[0]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_NUM_PARTITIONS", "num.partitions"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_LISTENER_NAME_INTERNAL_SSL_KEY_PASSWORD", "listener.name.internal.ssl.key.password"),
    ],
)
def test_environment_names_are_those_of_kafkas_images(variable: str, name: str) -> None:
    assert environment_key(variable) == name


def test_an_environment_name_that_is_no_key_is_a_warning() -> None:
    entries, warnings = read_environment({"KAFKA_NUM_PARTITION": "3", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKAESQUE": "1"})
    assert entries == {}
    assert len(warnings) == 1
    assert "environment KAFKA_NUM_PARTITION: num.partition is not a broker config name (did you mean" in warnings[0]


def test_what_only_tunes_a_jvm_is_a_warning() -> None:
    assert of({"num.io.threads": "8"}).warnings == (
        "num.io.threads has no effect: It sizes a thread pool of the JVM; here one event loop does that work.",
    )


@pytest.mark.parametrize(
    "name", ["sasl.enabled.mechanisms", "authorizer.class.name", "metric.reporters", "remote.log.storage.system.enable"]
)
def test_what_is_not_honoured_is_refused_by_name(name: str) -> None:
    text = "true" if name.endswith("enable") else "something"
    with pytest.raises(ConfigError, match=f"{name}={text} is not supported"):
        of({name: text})


def test_only_tls_can_be_set_for_one_listener() -> None:
    assert "listener.name.internal.ssl.client.auth" in of({"listener.name.internal.ssl.client.auth": "none"}).entries
    with pytest.raises(ConfigError, match=r"only ssl.\* keys can be set for one listener"):
        of({"listener.name.internal.max.connections": "5"})


def test_keys_of_another_distribution_are_a_warning() -> None:
    properties = of({"confluent.balancer.enable": "true"})
    assert properties.entries == {}
    assert "has no meaning to Apache Kafka" in properties.warnings[0]


@pytest.mark.parametrize("override", ["num.partitions", "=3"])
def test_an_override_has_a_key_and_a_value(override: str) -> None:
    with pytest.raises(ConfigError, match=r"write it as key=value"):
        load(overrides=[override])
