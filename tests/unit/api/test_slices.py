"""SEC-L2: one request is bounded in work; a large one gives way to others."""

from __future__ import annotations

import asyncio
import gc

import pytest

from strandline.api import (
    describe_configs,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    slices,
)
from strandline.api.slices import ANSWER_BYTES_MAX, REQUEST_BYTES_MAX, STEPS_PER_TURN_MAX, TURN_S, UnderWay
from strandline.api.table import BROKER_APIS
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.offsets.committing import OFFSETS_PER_REQUEST_MAX
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

DESCRIBE_CONFIGS, METADATA, LIST_OFFSETS = 32, 3, 2


class Clock:
    """Each part of the work takes a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def work(parts, part_bytes=0):
    for _ in range(parts):
        yield part_bytes
    return "done"


def turns(under_way):
    count = 1
    while not under_way.turn():
        count += 1
    return count


def test_a_turn_ends_when_its_time_is_over():
    assert turns(UnderWay(work(3), Clock())) == 1
    assert turns(UnderWay(work(100), Clock())) == pytest.approx(100 / (TURN_S * 1000), rel=0.3)


def test_where_no_time_passes_a_turn_ends_by_its_steps():
    assert turns(UnderWay(work(STEPS_PER_TURN_MAX - 1), lambda: 0.0)) == 1
    assert turns(UnderWay(work(3 * STEPS_PER_TURN_MAX - 1), lambda: 0.0)) == 3


def test_an_answer_is_given_up_before_it_is_too_large():
    under_way = UnderWay(work(1000, ANSWER_BYTES_MAX // 10), lambda: 0.0)
    with pytest.raises(KafkaError, match="ask for fewer things at once") as refused:
        turns(under_way)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert under_way.answer_bytes <= 1.1 * ANSWER_BYTES_MAX


async def test_others_have_their_turn_and_the_collector_waits():
    seen = []

    async def other():
        for _ in range(3):
            seen.append(gc.isenabled())
            await asyncio.sleep(0)

    beside = asyncio.get_running_loop().create_task(other())
    assert gc.isenabled()
    assert await slices.in_turns(work(10 * STEPS_PER_TURN_MAX), lambda: 0.0) == "done"
    assert seen == [False] * 3
    await beside
    await asyncio.sleep(0)
    assert gc.isenabled()


def metadata_frame(topics):
    request = messages.request(METADATA)(topics=topics, allow_auto_topic_creation=False)
    return memoryview(b"head" + messages.encode_request(METADATA, 9, request))


def many_topics(count):
    return [messages.request(METADATA).MetadataRequestTopic(name=f"unknown-{i}") for i in range(count)]


async def test_a_large_request_is_answered_as_a_small_one_is(broker):
    ctx = broker.context(METADATA, 9)
    large = broker.parts.large_requests
    topics = many_topics(5000)
    promised = large.serve(BROKER_APIS[METADATA], metadata_frame(topics), ctx, 4)
    small = large.serve(BROKER_APIS[METADATA], metadata_frame(topics[:3]), ctx, 4)
    reply = messages.decode_response(METADATA, 9, await promised)
    first = messages.decode_response(METADATA, 9, await slices.settled(small))
    assert len(reply.topics) == 5000
    assert reply.topics[:3] == first.topics
    assert (large.waiting_bytes, large.served_count, large.refused_count) == (0, 1, 0)


async def test_a_large_request_that_can_not_be_read_is_refused(broker):
    frame = metadata_frame(many_topics(5000))
    with pytest.raises(MalformedRequest):
        await broker.parts.large_requests.serve(BROKER_APIS[METADATA], frame[:-9], broker.context(METADATA, 9), 4)
    assert broker.parts.large_requests.waiting_bytes == 0


async def test_a_request_may_have_so_many_bytes(broker):
    frame = memoryview(bytes(REQUEST_BYTES_MAX + 5))
    with pytest.raises(MalformedRequest, match=f"more than {REQUEST_BYTES_MAX}"):
        broker.parts.large_requests.serve(BROKER_APIS[METADATA], frame, broker.context(METADATA, 9), 4)
    assert broker.parts.large_requests.refused_count == 1


async def test_only_so_many_large_requests_wait(broker, monkeypatch):
    frame = metadata_frame(many_topics(5000))
    monkeypatch.setattr(slices, "WAITING_BYTES_MAX", 3 * len(frame))
    large, ctx = broker.parts.large_requests, broker.context(METADATA, 9)
    replies = await asyncio.gather(
        *(large.serve(BROKER_APIS[METADATA], frame, ctx, 4) for _ in range(5)), return_exceptions=True
    )
    assert [type(reply) for reply in replies].count(MalformedRequest) == 2
    assert large.waiting_bytes == 0


async def test_a_wait_for_somebody_else_does_not_stop_the_next_large_request(broker):
    """Members of a group may be waited for, for minutes."""
    forever = BROKER_APIS[METADATA]._replace(handle=lambda request, ctx: asyncio.get_running_loop().create_future())
    frame, ctx = metadata_frame(many_topics(5000)), broker.context(METADATA, 9)
    large = broker.parts.large_requests
    waiting = [asyncio.ensure_future(large.serve(forever, frame, ctx, 4)) for _ in range(2 * slices.LARGE_REQUESTS_MAX)]
    assert await asyncio.wait_for(large.serve(BROKER_APIS[METADATA], frame, ctx, 4), 10)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


# What is named again and again is looked at once


async def test_describe_configs_merges_duplicates(broker):
    Resource = messages.request(DESCRIBE_CONFIGS).DescribeConfigsResource
    broker.create("t")
    same = Resource(resource_type=4, resource_name="1", configuration_keys=None)
    other = Resource(resource_type=2, resource_name="t", configuration_keys=["retention.ms"])
    whole = Resource(resource_type=2, resource_name="t", configuration_keys=None)
    reply = await broker.call(describe_configs, 4, resources=[same] * 3000 + [other, whole, other])
    assert [(result.resource_name, len(result.configs) > 1) for result in reply.results] == [
        ("1", True),
        ("t", False),
        ("t", True),
    ]


async def test_describe_configs_of_too_much_is_refused_before_it_is_built(broker, monkeypatch):
    monkeypatch.setattr(slices, "ANSWER_BYTES_MAX", 10_000)
    Resource = messages.request(DESCRIBE_CONFIGS).DescribeConfigsResource
    for name in ("a", "b", "c"):
        broker.create(name)
    wanted = [Resource(resource_type=2, resource_name=name, configuration_keys=None) for name in ("a", "b", "c")]
    reply = await broker.call(describe_configs, 4, resources=wanted, include_documentation=True)
    assert {(result.resource_name, result.error_code) for result in reply.results} == {
        (name, ErrorCode.INVALID_REQUEST) for name in ("a", "b", "c")
    }


async def test_find_coordinator_merges_duplicates(broker):
    reply = await broker.call(find_coordinator, 4, coordinator_keys=["a"] * 500 + ["b"])
    assert [found.key for found in reply.coordinators] == ["a", "b"]


@pytest.mark.parametrize("version", [1, 7, 9])
async def test_offset_fetch_of_many_partitions_comes_in_one_answer(broker, version):
    """It is read in parts, of which nobody sees anything."""
    request, count = messages.request(9), 5 * offset_fetch.PARTITIONS_AT_ONCE_MAX + 7
    broker.create("__consumer_offsets")
    broker.create("t")
    await asyncio.sleep(0.05)
    if version >= offset_fetch.SEVERAL_GROUPS_SINCE:
        topics = [request.OffsetFetchRequestTopics(name=name, partition_indexes=list(range(count))) for name in "tu"]
        fields = {"groups": [request.OffsetFetchRequestGroup(group_id=g, topics=topics) for g in ("g", "h")]}
    else:
        topics = [request.OffsetFetchRequestTopic(name=name, partition_indexes=list(range(count))) for name in "tu"]
        fields = {"group_id": "g", "topics": topics}
    reply = await broker.call(offset_fetch, version, **fields)
    groups = reply.groups if version >= offset_fetch.SEVERAL_GROUPS_SINCE else [reply]
    for group in groups:
        assert [(topic.name, len(topic.partitions)) for topic in group.topics] == [("t", count), ("u", count)]
        assert [p.partition_index for p in group.topics[1].partitions] == list(range(count))


async def test_list_offsets_and_metadata_of_many_partitions(broker):
    """Work beyond one turn is finished later, and answers the same."""
    broker.create("t", *[(1,)] * 3)
    request = messages.request(LIST_OFFSETS)
    partitions = [request.ListOffsetsPartition(partition_index=i, timestamp=-2) for i in range(20_000)]
    reply = await broker.call(
        list_offsets, 4, replica_id=-1, topics=[request.ListOffsetsTopic(name="t", partitions=partitions)]
    )
    codes = [p.error_code for p in reply.topics[0].partitions]
    assert codes == [0] * 3 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 19_997
    assert (
        len((await broker.call(metadata, 9, topics=many_topics(20_000), allow_auto_topic_creation=False)).topics)
        == 20_000
    )


async def test_a_commit_of_too_many_offsets_is_refused_before_anything_is_built(broker):
    request = messages.request(8)
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = request.OffsetCommitRequestTopic(name="t", partitions=[partition] * (OFFSETS_PER_REQUEST_MAX + 1))
    reply = await broker.call(offset_commit, 9, group_id="g", topics=[topic])
    assert {p.error_code for p in reply.topics[0].partitions} == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
