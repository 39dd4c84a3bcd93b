"""OffsetFetch in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, list-item"

from __future__ import annotations

import pytest

from strandline.api import offset_fetch
from strandline.errors import ErrorCode
from strandline.wire import messages

from .group_side import OFFSETS, commit, coordinating

Request = messages.request(9)


async def fetch(broker, version, *group_ids, all_topics=False):
    topic_id = broker.image.topics["t"].topic_id
    if version < 8:
        topics = [Request.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        return await broker.call(offset_fetch, version, group_id=group_ids[0], topics=None if all_topics else topics)
    named = {"topic_id": topic_id} if version >= 10 else {"name": "t"}
    topics = [Request.OffsetFetchRequestTopics(partition_indexes=[0, 1], **named)]
    groups = [
        Request.OffsetFetchRequestGroup(group_id=group_id, topics=None if all_topics else topics)
        for group_id in group_ids
    ]
    return await broker.call(offset_fetch, version, groups=groups)


def offsets(topics):
    return [(p.partition_index, p.committed_offset, p.error_code) for topic in topics for p in topic.partitions]


@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
async def test_every_version(broker, version):
    await coordinating(broker)
    await commit(broker, 7)
    reply = await fetch(broker, version, "g")
    topics = reply.topics if version < 8 else reply.groups[0].topics
    assert offsets(topics) == [(0, 7, 0), (1, -1, 0)]
    if version >= 2:
        reply = await fetch(broker, version, "g", all_topics=True)
        topics = reply.topics if version < 8 else reply.groups[0].topics
        assert offsets(topics) == [(0, 7, 0)]


@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
async def test_errors_of_the_group(broker, version):
    broker.create("t")
    for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        reply = await fetch(broker, version, "g")
        if version < 2:
            assert offsets(reply.topics) == [(0, -1, error), (1, -1, error)]
        elif version < 8:
            assert (reply.error_code, reply.topics) == (error, [])
        else:
            assert [(g.group_id, g.error_code, g.topics) for g in reply.groups] == [("g", error, [])]
        if OFFSETS not in broker.image.topics:
            broker.create(OFFSETS, (1,))


async def test_several_groups_in_the_order_in_which_they_were_asked_for(broker):
    await coordinating(broker)
    for i in range(3):
        await commit(broker, i, f"g{i}")
    reply = await fetch(broker, 9, "g2", "no", "g0", "g1")
    assert [(g.group_id, g.error_code, offsets(g.topics)[0][1]) for g in reply.groups] == [
        ("g2", 0, 2),
        ("no", 0, -1),
        ("g0", 0, 0),
        ("g1", 0, 1),
    ]
    assert (await broker.call(offset_fetch, 9, groups=[])).groups == []
