"""A whole node coordinates groups: from the first question to the last answer, and again after a restart."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import asyncio
from typing import Any

from strandline.errors import ErrorCode
from strandline.wire import messages

from ..conftest import Stage, frame
from ..lives import lives

FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP = 10, 8, 9, 11
Find, Commit, Fetch, Join = (
    messages.request(key) for key in (FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP)
)
SETTINGS = {"offsets_topic_replication_factor": "1", "offsets_topic_num_partitions": "4"}


async def found(stage: Stage) -> None:
    for _ in range(100):
        reply = await stage.call(FIND_COORDINATOR, 4, Find(coordinator_keys=["g"]))
        if not reply.coordinators[0].error_code and not stage.node.parts.groups.loading:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nobody coordinates the group")


async def commit(stage: Stage, offset: int) -> int:
    partition = Commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [Commit.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    reply = await stage.call(OFFSET_COMMIT, 8, Commit(group_id="g", topics=topics))
    return int(reply.topics[0].partitions[0].error_code)


async def committed(stage: Stage) -> int:
    topics = [Fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [Fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)]
    reply = await stage.call(OFFSET_FETCH, 8, Fetch(groups=groups))
    return int(reply.groups[0].topics[0].partitions[0].committed_offset)


def test_offsets_survive_a_kill() -> None:
    async def before(stage: Stage) -> None:
        await stage.create()
        await found(stage)
        for offset in range(1, 6):
            assert await commit(stage, offset) == 0

    async def after(stage: Stage) -> None:
        await found(stage)
        assert await committed(stage) == 5
        assert stage.node.parts.groups.stats.loaded_records == 5

    lives(before, after, **SETTINGS)


def test_a_member_that_waits_is_answered_before_the_node_is_gone(play: Any) -> None:
    async def story(stage: Stage) -> None:
        await stage.create()
        await found(stage)
        end = stage.connect()
        protocols = [Join.JoinGroupRequestProtocol(name="range", metadata=b"")]
        request = Join(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols)
        end.feed(frame(JOIN_GROUP, 3, request))
        await asyncio.sleep(0.1)
        assert not end.sent
        await stage.node.stop()
        [(_, reply)] = end.replies()
        assert messages.decode_response(JOIN_GROUP, 3, reply).error_code == ErrorCode.NOT_COORDINATOR

    play(story, **SETTINGS)
