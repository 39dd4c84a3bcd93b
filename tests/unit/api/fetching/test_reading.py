"""Where a Fetch may read."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api.fetching.reading import absence, diverging, find
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.wire.fetch import FetchPartition

from ..conftest import registration


def at(offset, last=-1):
    return FetchPartition(0, -1, offset, last, 0, 1 << 20)


@pytest.fixture
def partition(broker):
    """Epoch 0 has offsets 0 to 2, epoch 2 has 3 and 4; the log starts at 1."""
    broker.create("t")
    broker.append("t", 1, 2, 3)
    broker.change(leader=1)
    broker.change(leader=1)
    broker.append("t", 4, 5)
    partition = broker.parts.hosted.by_name["t", 0]
    partition.delete_records(1)
    return partition


@pytest.mark.parametrize(
    ("offset", "last", "answer"),
    [
        (1, -1, None),
        (5, -1, None),
        (3, 0, None),
        (5, 2, None),
        (4, 0, (0, 3)),
        (2, 1, (0, 3)),
        (5, 1, (0, 3)),
        (6, 2, (2, 5)),
        (9, 0, (0, 3)),
    ],
)
def test_a7_where_the_logs_part(partition, offset, last, answer):
    assert diverging(partition, at(offset, last)) == answer


@pytest.mark.parametrize(("offset", "last"), [(0, -1), (0, 0), (0, 1), (-1, -1), (6, -1), (2**62, -1)])
def test_a8_out_of_range(partition, offset, last):
    with pytest.raises(KafkaError, match=f"offset {offset} ") as refused:
        diverging(partition, at(offset, last))
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_partition_is_found_by_name_and_by_id(broker):
    topic_id = broker.create("t", (1,), (1,))
    assert find(broker.parts, ("t", 1)) is find(broker.parts, (topic_id, 1)) is broker.parts.hosted.by_name["t", 1]
    assert find(broker.parts, ("t", 2)) is None


def test_why_a_partition_is_not_here(broker):
    broker.commit([registration(2)])
    broker.unopened.add(("broken", 0))
    ids = {name: broker.create(name, chosen) for name, chosen in (("other", (2,)), ("broken", (1,)))}
    for topic, index, error in (
        ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Uuid(b"x" * 16), 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ("other", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("other", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ids["other"], 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ids["broken"], 0, ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        assert absence(broker.parts, (topic, index)) is error
