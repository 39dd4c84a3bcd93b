"""OffsetCommit in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import offset_commit
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.wire import messages

from .group_side import OFFSETS, commit, coordinating


@pytest.mark.parametrize("version", offset_commit.VERSIONS)
async def test_every_version(broker, version):
    await coordinating(broker)
    assert (await commit(broker, 7, version=version)).error_code == 0
    [shard] = broker.groups.shards()
    committed = shard.offsets.get("g", "t", 0)
    assert (committed.offset, committed.topic_id) == (7, broker.image.topics["t"].topic_id)
    refused = await commit(broker, 8, version=version, generation_id_or_member_epoch=3, member_id="m")
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.offsets.get("g", "t", 0).offset == 7


@pytest.mark.parametrize("version", offset_commit.VERSIONS)
async def test_refusals_name_every_partition(broker, version):
    broker.create("t")
    assert (await commit(broker, 7, version=version)).error_code == ErrorCode.NOT_COORDINATOR
    broker.create(OFFSETS, (1,))
    assert (await commit(broker, 7, version=version)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_the_empty_group_may_commit(broker):
    await coordinating(broker)
    assert (await commit(broker, 7, group_id="")).error_code == 0


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 10, 0, -1, -(2**63)])
async def test_retention_times_as_old_clients_may_ask_for(broker, retention_ms):
    await coordinating(broker)
    assert (await commit(broker, 7, version=4, retention_time_ms=retention_ms)).error_code == 0


async def test_a_topic_id_that_is_gone(broker):
    await coordinating(broker)
    Request = messages.request(offset_commit.KEY)
    topic = Request.OffsetCommitRequestTopic(
        topic_id=Uuid(b"x" * 16), partitions=[Request.OffsetCommitRequestPartition(partition_index=0)]
    )
    reply = await broker.call(offset_commit, 10, group_id="g", topics=[topic])
    assert reply.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_one_that_waits_may_be_overtaken(broker):
    await coordinating(broker)
    Request = messages.request(offset_commit.KEY)
    topic = Request.OffsetCommitRequestTopic(
        name="t", partitions=[Request.OffsetCommitRequestPartition(partition_index=0)]
    )
    later = offset_commit.handle(Request(group_id="g", topics=[topic]), broker.context(8, 8))
    assert isinstance(later, PendingReply)
    assert (later.may_be_overtaken, later.done) == (True, False)
    later.cancel()
