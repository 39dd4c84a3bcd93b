"""Changing configuration while the cluster runs."""

from __future__ import annotations

import pytest

from strandline.config.alter import Alteration, Op, alter_broker, alter_topic, check_topic, warnings
from strandline.config.errors import ConfigError
from strandline.config.key import Where
from strandline.config.layers import Layers


def test_set_delete_append_and_subtract() -> None:
    current = {"retention.ms": "1", "cleanup.policy": "compact"}
    altered = alter_topic(
        current,
        [
            Alteration("retention.ms", Op.DELETE, None),
            Alteration("cleanup.policy", Op.APPEND, "delete,compact"),
            Alteration("max.message.bytes", Op.SET, "100"),
        ],
    )
    assert altered == {"cleanup.policy": "compact,delete", "max.message.bytes": "100"}
    assert alter_topic(altered, [Alteration("cleanup.policy", Op.SUBTRACT, "delete")])["cleanup.policy"] == "compact"
    assert current == {"retention.ms": "1", "cleanup.policy": "compact"}


def test_appending_to_nothing_appends_to_the_default() -> None:
    assert alter_topic({}, [Alteration("cleanup.policy", Op.APPEND, "compact")]) == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("alteration", "why"),
    [
        (
            Alteration("retention.ms", Op.SET, "x"),
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (Alteration("retention.ms", Op.APPEND, "1"), "Can't APPEND to key retention.ms because its type is not LIST."),
        (Alteration("retention.ms", Op.SET, None), "Null value not supported for topic configs: retention.ms"),
        (Alteration("retention.m", Op.SET, "1"), "Unknown topic config name: retention.m (did you mean retention.ms?)"),
        (
            Alteration("retention.m", Op.DELETE, None),
            "Unknown topic config name: retention.m (did you mean retention.ms?)",
        ),
        (
            Alteration("segment.bytes", Op.SET, "5"),
            "Invalid value 5 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (Alteration("cleanup.policy", Op.SET, "x" * 40_000), "The value of cleanup.policy has more than 32767 bytes"),
    ],
)
def test_what_a_client_is_told(alteration: Alteration, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        alter_topic({}, [alteration])
    assert caught.value.message == why


def test_tiered_storage_cannot_be_turned_on() -> None:
    check_topic({"remote.storage.enable": "false"})
    with pytest.raises(ConfigError, match=r"remote.storage.enable=true is not supported: Tiered storage is not built"):
        check_topic({"remote.storage.enable": "true"})


def test_throttled_replicas_are_a_list_or_a_star() -> None:
    name = "leader.replication.throttled.replicas"
    assert alter_topic({name: "0:1"}, [Alteration(name, Op.DELETE, None)]) == {}
    assert alter_topic({name: "0:1"}, [Alteration(name, Op.APPEND, "1:2")]) == {name: "0:1,1:2"}
    for value in ("*", "0:1", "", "0:1,12:3"):
        assert alter_topic({}, [Alteration(name, Op.SET, value)]) == {name: value}
    for value in ("0", "0:1,*", "a:b", "**", "0:1;1:2"):
        with pytest.raises(ConfigError, match=r"must be the literal '\*' or a list of replicas"):
            alter_topic({}, [Alteration(name, Op.SET, value)])


def test_the_rates_of_throttles_are_dynamic_for_one_broker_and_for_all() -> None:
    for name in ("leader.replication.throttled.rate", "follower.replication.throttled.rate"):
        for one_broker in (True, False):
            assert alter_broker({}, [Alteration(name, Op.SET, "1000")], one_broker=one_broker) == {name: "1000"}
        with pytest.raises(ConfigError, match=r"at least 0"):
            alter_broker({}, [Alteration(name, Op.SET, "-1")], one_broker=True)


def test_the_cleaners_pace_is_dynamic_and_whether_there_is_one_is_not() -> None:
    for name, value in (
        ("log.cleaner.threads", "0"),
        ("log.cleaner.io.max.bytes.per.second", "1048576.5"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("log.cleaner.backoff.ms", "1"),
    ):
        assert alter_broker({}, [Alteration(name, Op.SET, value)], one_broker=False) == {name: value}
    with pytest.raises(ConfigError, match=r"at least 1"):
        alter_broker({}, [Alteration("log.cleaner.io.max.bytes.per.second", Op.SET, "0")], one_broker=False)
    with pytest.raises(ConfigError, match=r"Cannot update these configs dynamically: \[log.cleaner.enable\]"):
        alter_broker({}, [Alteration("log.cleaner.enable", Op.SET, "false")], one_broker=False)


def test_the_whole_result_must_be_valid() -> None:
    with pytest.raises(
        ConfigError, match=r"min.compaction.lag.ms \(10\) must not be greater than max.compaction.lag.ms \(5\)"
    ):
        alter_topic({"max.compaction.lag.ms": "5"}, [Alteration("min.compaction.lag.ms", Op.SET, "10")])
    with pytest.raises(ConfigError, match=r"must not be greater"):
        check_topic({"min.compaction.lag.ms": "10"}, Layers({"log.cleaner.max.compaction.lag.ms": "5"}))


def test_one_request_alters_a_key_once() -> None:
    with pytest.raises(ConfigError, match=r"altered twice"):
        alter_topic({}, [Alteration("retention.ms", Op.SET, "1"), Alteration("retention.ms", Op.SET, "2")])


def test_what_another_version_set_may_stay() -> None:
    current = {"from.the.future": "1"}
    assert alter_topic(current, [Alteration("retention.ms", Op.SET, "2")]) == current | {"retention.ms": "2"}


def test_a_broker_takes_what_is_dynamic() -> None:
    assert alter_broker({}, [Alteration("max.connections", Op.SET, "5")], one_broker=False) == {"max.connections": "5"}
    with pytest.raises(ConfigError) as caught:
        alter_broker({}, [Alteration("node.id", Op.SET, "5")], one_broker=True)
    assert caught.value.message == "Cannot update these configs dynamically: [node.id]"
    with pytest.raises(ConfigError, match=r"Unknown broker config name"):
        alter_broker({}, [Alteration("nonsense", Op.SET, "5")], one_broker=True)


def test_what_kafka_takes_without_effect_is_kept_with_a_warning() -> None:
    """MirrorMaker 2 sets a topic's whole configuration at once, and would lose all of it for one of these."""
    copied = {
        "preallocate": "true",
        "local.retention.ms": "1000",
        "local.retention.bytes": "7",
        "remote.log.copy.disable": "true",
        "remote.log.delete.on.disable": "true",
        "retention.ms": "5000",
    }
    altered = alter_topic({}, [Alteration(name, Op.SET, value) for name, value in copied.items()])
    assert altered == copied
    said = warnings(Where.TOPIC, {**altered, "no.such.key": "1"})
    assert [sentence.partition("=")[0] for sentence in said] == [name for name in copied if name != "retention.ms"]
    with pytest.raises(ConfigError, match=r"Value must be at least -2"):
        alter_topic({}, [Alteration("local.retention.ms", Op.SET, "-3")])


def test_a_running_broker_takes_what_only_tunes_a_jvm() -> None:
    threads = [Alteration("num.io.threads", Op.SET, "16")]
    assert alter_broker({}, threads, one_broker=False) == {"num.io.threads": "16"}
    assert warnings(Where.BROKER, {"num.io.threads": "16"})[0].startswith("num.io.threads=16 has no effect: ")
    with pytest.raises(ConfigError, match=r"Cannot update these configs dynamically: \[group.coordinator.threads\]"):
        alter_broker({}, [Alteration("group.coordinator.threads", Op.SET, "16")], one_broker=False)
