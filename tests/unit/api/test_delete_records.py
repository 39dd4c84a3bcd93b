"""DeleteRecords: where a log starts from now on."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio

import pytest

from strandline.api import delete_records
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

from .conftest import registration

Request = messages.request(21)


async def delete(broker, version, topic, offset, index=0, timeout_ms=0):
    reply = await broker.call(
        delete_records,
        version,
        timeout_ms=timeout_ms,
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
    assert broker.parts.hosted.by_name["t", 0].log.log_start_offset == 4


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
    broker.parts.hosted.by_name["offline", 0].fail()
    assert await delete(broker, 2, "no", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(broker, 2, "both", 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(broker, 2, "other", 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert await delete(broker, 2, "compacted", 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert await delete(broker, 2, "both", 0) == (0, 0)
    assert await delete(broker, 2, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert await delete(broker, 2, "offline", 0) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


# Followers


@pytest.fixture
def replicated(broker):
    """Four records, which 2 and 3 have too."""
    broker.commit([registration(2), registration(3)])
    broker.create("t", (1, 2, 3))
    broker.append("t", 1, 2, 3, 4)
    for replica in (2, 3):
        broker.follow(replica, 4)
    return broker


async def deleting(broker, offset=2, timeout_ms=60_000):
    task = asyncio.create_task(delete(broker, 2, "t", offset, timeout_ms=timeout_ms))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_the_answer_waits_until_every_live_follower_has_deleted_too(replicated):
    task = await deleting(replicated)
    replicated.follow(2, 4, log_start=2)
    await asyncio.sleep(0)
    assert not task.done()
    replicated.follow(3, 4, log_start=3)
    assert await task == (0, 2)


async def test_followers_that_are_further_already_are_not_waited_for(replicated):
    for replica in (2, 3):
        replicated.follow(replica, 4, log_start=3)
    assert await delete(replicated, 2, "t", 2) == (0, 2)


async def test_what_is_not_done_in_time_is_under_way(replicated):
    assert await delete(replicated, 2, "t", 2, timeout_ms=1) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert replicated.parts.hosted.by_name["t", 0].log.log_start_offset == 2
    for replica in (2, 3):
        replicated.follow(replica, 4, log_start=2)
    assert await delete(replicated, 2, "t", 2) == (0, 2)


async def test_a_broker_that_is_fenced_is_not_waited_for(replicated):
    replicated.commit([r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)])
    replicated.follow(2, 4, log_start=2)
    assert await delete(replicated, 2, "t", 2) == (0, 2)


async def test_a_broker_that_is_fenced_meanwhile_is_waited_for_no_more(replicated):
    task = await deleting(replicated)
    replicated.follow(2, 4, log_start=2)
    replicated.commit([r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)])
    replicated.change(isr=(1, 2))
    assert await task == (0, 2)


async def test_a_leader_that_is_deposed_meanwhile_says_so(replicated):
    task = await deleting(replicated)
    replicated.change(leader=2)
    assert await task == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_nothing_is_deleted_that_is_not_committed(replicated):
    replicated.append("t", 5)
    assert await delete(replicated, 2, "t", 5) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_followers_hear_of_the_new_start_without_asking(replicated):
    woken = []
    replicated.parts.hosted.by_name["t", 0].watchers[Watcher(woken)] = None
    await delete(replicated, 2, "t", 2)
    assert woken == [True]


class Watcher:
    def __init__(self, woken):
        self.woken = woken

    def notify(self, *, urgent):
        self.woken.append(urgent)
