"""The heaviest legal request of each API, as bytes: what they did to a node before their limits is in each one's sentence.

Always true: an attack is plain data, to be sent by a test or a benchmark to any node that has the topic TOPIC.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from strandline.wire import messages

TOPIC = "t"
ANSWERED, CLOSED = "answered", "closed"


class Attack(NamedTuple):
    name: str
    api_key: int
    version: int
    body: Callable[[], bytes]
    outcome: str = ANSWERED
    """ANSWERED, or CLOSED for what is more than anybody may send."""


def _int(number: int) -> bytes:
    return struct.pack(">i", number)


def _text(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def _names(count: int) -> bytes:
    return _int(count) + b"".join(_text(b"u%d" % i) for i in range(count))


def _one_topic(count: int, partition: Callable[[int], bytes]) -> bytes:
    return _int(1) + _text(TOPIC.encode()) + _int(count) + b"".join(map(partition, range(count)))


def _describe_configs() -> bytes:
    request = messages.request(32)
    resource = request.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    return messages.encode_request(
        32, 3, request(resources=[resource] * 3000, include_synonyms=True, include_documentation=True)
    )


def _find_coordinator() -> bytes:
    request = messages.request(10)
    return messages.encode_request(10, 4, request(key_type=0, coordinator_keys=[f"g{i}" for i in range(60_000)]))


def _offset_commit(count: int) -> bytes:
    return (
        _text(b"g")
        + _int(-1)
        + _text(b"")
        + struct.pack(">q", -1)
        + _one_topic(count, lambda i: struct.pack(">iqh", i, 5, -1))
    )


def _create_topics(count: int) -> bytes:
    request = messages.request(19)
    topics = [
        request.CreatableTopic(name=f"n.{i}", num_partitions=1, replication_factor=-1, assignments=[], configs=[])
        for i in range(count)
    ]
    return messages.encode_request(19, 5, request(topics=topics, timeout_ms=30_000, validate_only=True))


def topics_with_configs() -> bytes:
    """A CreateTopics whose decision takes long and whose objects are many: they are held until it is made."""
    request = messages.request(19)
    configs = [request.CreatableTopicConfig(name="retention.ms", value=str(i)) for i in range(40)]
    topics = [
        request.CreatableTopic(name=f"n.{i}", num_partitions=1, replication_factor=-1, assignments=[], configs=configs)
        for i in range(2_300)
    ]
    return messages.encode_request(19, 5, request(topics=topics, timeout_ms=30_000, validate_only=True))


def _alter_group_configs(count: int) -> bytes:
    request = messages.request(44)
    config = request.AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="50000")
    resources = [
        request.AlterConfigsResource(resource_type=32, resource_name=f"group-{i}", configs=[config])
        for i in range(count)
    ]
    return messages.encode_request(44, 1, request(resources=resources, validate_only=True))


ATTACKS = (
    # 18 KB that stopped a node for a minute.
    Attack("DescribeConfigs of one resource 3,000 times", 32, 3, _describe_configs),
    Attack("Metadata of unknown topics", 3, 4, lambda: _names(99_000) + b"\0"),
    Attack("Metadata of one topic, again and again", 3, 4, lambda: _int(99_000) + _text(b"t") * 99_000 + b"\0"),
    Attack("Metadata of more than may be read", 3, 4, lambda: _names(200_000) + b"\0", CLOSED),
    Attack("ListOffsets", 2, 1, lambda: _int(-1) + _one_topic(60_000, lambda i: struct.pack(">iq", i, -2))),
    Attack("ListOffsets by time", 2, 1, lambda: _int(-1) + _one_topic(60_000, lambda i: struct.pack(">iq", i % 4, 1))),
    # It made the watchdog close everybody's connections.
    Attack(
        "Fetch of one partition, again and again",
        1,
        4,
        lambda: (
            struct.pack(">iiiib", -1, 0, 0, 50 << 20, 0)
            + _one_topic(9_999, lambda i: struct.pack(">iqi", 0, 0, 1 << 20))
        ),
    ),
    Attack(
        "Fetch of more partitions than a session may have",
        1,
        4,
        lambda: (
            struct.pack(">iiiib", -1, 60_000, 1, 50 << 20, 0)
            + _one_topic(49_990, lambda i: struct.pack(">iqi", i, 0, 1 << 20))
        ),
    ),
    # 830 KB that stopped a node for minutes.
    Attack(
        "DescribeClientQuotas of unknown types",
        48,
        0,
        lambda: _int(79_000) + b"".join(_text(b"%d" % i) + b"\2\xff\xff" for i in range(79_000)) + b"\0",
    ),
    Attack("OffsetFetch", 9, 1, lambda: _text(b"g") + _one_topic(300_000, _int)),
    Attack("OffsetCommit", 8, 2, lambda: _offset_commit(60_000)),
    Attack("DescribeGroups", 15, 0, lambda: _names(60_000)),
    Attack("DeleteGroups", 42, 0, lambda: _names(30_000)),
    Attack("FindCoordinator", 10, 4, _find_coordinator),
    Attack("DescribeProducers", 61, 0, lambda: b"\x02\x02t" + b"\xa1\x8d\x06" + _int(0) * 100_000 + b"\0\0"),
    Attack("OffsetForLeaderEpoch", 23, 2, lambda: _one_topic(60_000, lambda i: struct.pack(">iii", i, -1, 0))),
    Attack("DeleteRecords", 21, 0, lambda: _one_topic(60_000, lambda i: struct.pack(">iq", i, 0)) + _int(1000)),
    Attack(
        "Produce",
        0,
        7,
        lambda: struct.pack(">hhi", -1, 1, 1000) + _one_topic(9_000, lambda i: struct.pack(">ii", 0, -1)),
    ),
    # It took an active controller's leadership away.
    Attack("CreateTopics", 19, 5, lambda: _create_topics(4_900)),
    Attack("CreateTopics of too many", 19, 5, lambda: _create_topics(20_000)),
    Attack("DeleteTopics", 20, 1, lambda: _names(9_000) + _int(1000)),
    Attack("IncrementalAlterConfigs", 44, 1, lambda: _alter_group_configs(9_000)),
)
