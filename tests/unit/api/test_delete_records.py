"""DeleteRecords: where a log starts from now on."""

from __future__ import annotations

import pytest

from strandline.api import delete_records
from strandline.errors import ErrorCode
from strandline.wire import messages

from .conftest import registration

Request = messages.request(21)


async def delete(broker, version, topic, offset, index=0):
    reply = await broker.call(
        delete_records,
        version,
        topics=[
            Request.DeleteRecordsTopic(
                name=topic, partitions=[Request.DeleteRecordsPartition(partition_index=index, offset=offset)]
            )
        ],
    )
    [result] = reply.topics[0].partitions
    assert (reply.topics[0].name, result.partition_index) == (topic, index)
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", delete_records.VERSIONS)
async def test_the_log_starts_where_it_was_told_to(broker, version):
    broker.create("t")
    broker.append("t", 1, 2, 3, 4)
    assert await delete(broker, version, "t", 2) == (0, 2)
    assert await delete(broker, version, "t", 1) == (0, 2), "it never moves back"
    assert await delete(broker, version, "t", -1) == (0, 4)
    assert broker.parts.partitions["t", 0].log.log_start_offset == 4


@pytest.mark.parametrize("offset", [5, 2**62, -2, -(2**63)])
async def test_offsets_that_are_not_there(broker, offset):
    broker.create("t")
    broker.append("t", 1, 2, 3, 4)
    assert await delete(broker, 2, "t", offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_partitions_from_which_nothing_is_deleted(broker):
    broker.commit([registration(2)])
    broker.create("other", (2,))
    broker.create("compacted", configs={"cleanup.policy": "compact"})
    broker.create("both", configs={"cleanup.policy": "compact,delete"})
    broker.create("__consumer_offsets")
    broker.create("offline")
    broker.parts.partitions["offline", 0].fail()
    assert await delete(broker, 2, "no", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(broker, 2, "both", 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(broker, 2, "other", 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert await delete(broker, 2, "compacted", 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert await delete(broker, 2, "both", 0) == (0, 0)
    assert await delete(broker, 2, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert await delete(broker, 2, "offline", 0) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
