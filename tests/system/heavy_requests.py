"""The heaviest legal request of each API, as bytes: what they did to a node before their limits is in each one's sentence.

Always true: an attack is plain data, to be sent by a test or a benchmark to any node that has the topic TOPIC.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from strandline.records.batch import BatchBuilder
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


def _transactional_produce(count: int) -> bytes:
    """Of a transactional id that is as long as one may be, and that no coordinator knows."""
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=1)
    batch = bytes(builder.build(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    partition = struct.pack(">ii", 0, len(batch)) + batch
    return _text(b"x" * 32_767) + struct.pack(">hi", -1, 1000) + _one_topic(count, lambda i: partition)


def _additions_of_leaders(count: int) -> bytes:
    request = messages.request(24)
    topic = request.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(count)))
    asked = request.AddPartitionsToTxnTransaction(transactional_id="t", producer_id=1, producer_epoch=0, topics=[topic])
    return messages.encode_request(24, 4, request(transactions=[asked]))


def _markers(count: int) -> bytes:
    request = messages.request(27)
    topics = [request.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])]
    markers = [
        request.WritableTxnMarker(producer_id=i, producer_epoch=0, transaction_result=False, topics=topics)
        for i in range(count)
    ]
    return messages.encode_request(27, 1, request(markers=markers))


def _describe_transactions(count: int) -> bytes:
    return messages.encode_request(65, 0, messages.request(65)(transactional_ids=[f"t{i}" for i in range(count)]))


def _list_transactions(count: int) -> bytes:
    return messages.encode_request(66, 0, messages.request(66)(state_filters=[f"s{i}" for i in range(count)]))


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
    Attack(
        "AddPartitionsToTxn",
        24,
        0,
        lambda: _text(b"t") + struct.pack(">qh", 1, 0) + _one_topic(390_000, _int),
    ),
    Attack("AddPartitionsToTxn of a leader", 24, 4, lambda: _additions_of_leaders(390_000)),
    # Three seconds in one turn.
    Attack("WriteTxnMarkers", 27, 1, lambda: _markers(30_000)),
    Attack(
        "TxnOffsetCommit",
        28,
        2,
        lambda: (
            _text(b"t")
            + _text(b"g")
            + struct.pack(">qh", 1, 0)
            + _one_topic(50_000, lambda i: struct.pack(">iqih", i, 5, -1, -1))
        ),
    ),
    Attack("DescribeTransactions", 65, 0, lambda: _describe_transactions(100_000)),
    Attack("ListTransactions", 66, 0, lambda: _list_transactions(100_000)),
    # A thousand times as much came back.
    Attack("Produce of a transaction", 0, 7, lambda: _transactional_produce(9_000)),
    Attack("Produce of a transaction, with messages", 0, 8, lambda: _transactional_produce(9_000)),
    # It took an active controller's leadership away.
    Attack("CreateTopics", 19, 5, lambda: _create_topics(4_900)),
    Attack("CreateTopics of too many", 19, 5, lambda: _create_topics(20_000)),
    Attack("DeleteTopics", 20, 1, lambda: _names(9_000) + _int(1000)),
    Attack("IncrementalAlterConfigs", 44, 1, lambda: _alter_group_configs(9_000)),
)
