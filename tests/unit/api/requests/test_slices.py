"""SEC-L2: one request is bounded in work; a large one gives way to others."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="dict-item, misc"

from __future__ import annotations

import asyncio
import gc

import pytest

from strandline import sliced_work
from strandline.api import (
    add_partitions_to_txn,
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_configs,
    describe_transactions,
    describe_user_scram_credentials,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    write_txn_markers,
)
from strandline.api.offset_commit import OFFSETS_PER_REQUEST_MAX
from strandline.api.requests import slices
from strandline.errors import ErrorCode, KafkaError
from strandline.sliced_work import STEPS_PER_TURN_MAX
from strandline.wire import messages

DESCRIBE_CONFIGS, METADATA, LIST_OFFSETS = 32, 3, 2


def work(parts):
    for _ in range(parts):
        yield 0
    return "done"


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


async def test_the_collector_is_off_for_so_long_at_most(monkeypatch):
    """A node that always has a large request in progress."""
    monkeypatch.setattr(slices, "COLLECTOR_OFF_S_MAX", -1.0)
    assert gc.isenabled()
    with slices.collecting_later():
        assert not gc.isenabled()
        with slices.collecting_later():
            pass
        await asyncio.sleep(0)
        assert gc.isenabled()
    await asyncio.sleep(0)
    assert gc.isenabled()


async def test_work_ends_when_a_check_between_its_turns_raises():
    left = [None] * 3

    def check():
        if not left:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        left.pop()

    with pytest.raises(KafkaError):
        await slices.in_turns(work(10 * STEPS_PER_TURN_MAX), lambda: 0.0, check)


def many_topics(count):
    return [messages.request(METADATA).MetadataRequestTopic(name=f"unknown-{i}") for i in range(count)]


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
    monkeypatch.setattr(sliced_work, "ANSWER_BYTES_MAX", 10_000)
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


# What is refused item by item is refused in slices


def many(api, count):
    """A request of that API with so many items."""
    request = messages.request(api.KEY)
    if api is create_acls:
        return request(creations=[request.AclCreation(resource_type=2, resource_name="t") for _ in range(count)])
    if api is delete_acls:
        return request(filters=[request.DeleteAclsFilter(resource_type_filter=2) for _ in range(count)])
    if api is alter_client_quotas:
        entity = [request.EntityData(entity_type="user", entity_name=str(i)) for i in range(count // 2)]
        ops = [request.OpData(key=str(i), remove=True) for i in range(count // 2)]
        return request(entries=[request.EntryData(entity=entity, ops=ops)])
    if api is alter_user_scram_credentials:
        return request(deletions=[request.ScramCredentialDeletion(name=str(i)) for i in range(count)])
    if api is describe_transactions:
        return request(transactional_ids=[str(i) for i in range(count)])
    if api is add_partitions_to_txn:
        topic = request.AddPartitionsToTxnTopic(name="t", partitions=list(range(count)))
        asked = request.AddPartitionsToTxnTransaction(transactional_id="t", topics=[topic])
        return request(v3_and_below_transactional_id="t", v3_and_below_topics=[topic], transactions=[asked])
    if api is write_txn_markers:
        topic = request.WritableTxnMarkerTopic(name="t", partition_indexes=list(range(count)))
        return request(markers=[request.WritableTxnMarker(producer_id=1, topics=[topic])])
    return request(users=[request.UserName(name=str(i)) for i in range(count)])


@pytest.mark.parametrize(
    "api",
    [
        add_partitions_to_txn,
        create_acls,
        delete_acls,
        alter_client_quotas,
        alter_user_scram_credentials,
        describe_transactions,
        describe_user_scram_credentials,
        write_txn_markers,
    ],
)
async def test_an_answer_of_many_items_is_built_in_slices(broker, api):
    for version in (api.VERSIONS[-1], api.VERSIONS[0]):
        ctx = broker.context(api.KEY, version)
        outcome = api.handle(many(api, 2 * STEPS_PER_TURN_MAX), ctx)
        assert isinstance(outcome, slices.InSlices)
        assert messages.decode_response(api.KEY, ctx.version, await outcome)
