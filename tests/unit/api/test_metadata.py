"""Metadata: brokers, topics, leaders, and topics that come into being by being asked for."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio

import pytest

from strandline.api import metadata
from strandline.api.cluster.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata import records as r
from strandline.wire import messages

from .conftest import CLUSTER_ID, dir_id, registration

Topic = messages.request(3).MetadataRequestTopic
NOT_ASKED = -(1 << 31)


def named(*names):
    return [Topic(name=name) for name in names]


@pytest.mark.parametrize("version", metadata.VERSIONS)
async def test_all_topics_in_every_version(broker, version):
    topic_ids = {name: broker.create(name, (1,), (1,)) for name in ("a", "b", "__consumer_offsets")}
    everything = [] if version == 0 else None
    reply = await broker.call(metadata, version, topics=everything)
    assert [(b.node_id, b.host, b.port, b.rack) for b in reply.brokers] == [(1, "host1", 9091, None)]
    assert [topic.name for topic in reply.topics] == ["a", "b", "__consumer_offsets"]
    assert [(p.partition_index, p.leader_id, p.error_code) for p in reply.topics[0].partitions] == [
        (0, 1, 0),
        (1, 1, 0),
    ]
    assert reply.topics[0].partitions[0].replica_nodes == reply.topics[0].partitions[0].isr_nodes == [1]
    if version >= 1:
        assert reply.controller_id == 1
        assert [topic.is_internal for topic in reply.topics] == [False, False, True]
    if version >= 2:
        assert reply.cluster_id == CLUSTER_ID
    if version >= 7:
        assert reply.topics[0].partitions[0].leader_epoch == 0
    if version >= 10:
        assert reply.topics[0].topic_id == topic_ids["a"]
    assert reply.topics[0].topic_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", [1, 8, 9, 13])
async def test_an_empty_list_asks_for_brokers_only(broker, version):
    broker.create("a")
    reply = await broker.call(metadata, version, topics=[])
    assert reply.topics == []
    assert len(reply.brokers) == 1


async def test_the_answer_is_the_same_whether_it_was_kept_or_made_anew(broker):
    broker.create("a", (1,), (1,))
    first, again = [await broker.call(metadata, 12, topics=None) for _ in range(2)]
    assert first == again
    broker.commit([registration(2)])
    assert len((await broker.call(metadata, 12, topics=None)).brokers) == 2
    topic_id = broker.image.topics["a"].topic_id
    broker.commit([r.PartitionChangeRecord(partition_id=1, topic_id=topic_id, leader=2, isr=(2,), replicas=(2,))])
    partitions = (await broker.call(metadata, 12, topics=None)).topics[0].partitions
    assert [(p.leader_id, p.leader_epoch) for p in partitions] == [(1, 0), (2, 1)]


async def test_each_listener_has_its_own_hosts_and_each_flag_its_own_answer(broker):
    broker.create("a")
    other = await broker.call(metadata, 9, listener="OTHER", topics=None, include_topic_authorized_operations=True)
    assert [(b.host, b.port) for b in other.brokers] == [("other1", 9191)]
    assert other.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
    plain = await broker.call(metadata, 9, topics=None, include_cluster_authorized_operations=True)
    assert plain.topics[0].topic_authorized_operations == NOT_ASKED
    assert plain.cluster_authorized_operations == CLUSTER_OPERATIONS


async def test_a_fenced_broker_is_left_out_and_its_replicas_are_offline(broker):
    broker.commit([registration(2, fenced=True), registration(3)])
    broker.create("a", (1, 2, 3), directories=(dir_id(1), dir_id(2), Uuid(bytes(15) + b"\2")))
    reply = await broker.call(metadata, 9, topics=None)
    assert [b.node_id for b in reply.brokers] == [1, 3]
    partition = reply.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (0, 1)
    assert partition.replica_nodes == [1, 2, 3]
    assert partition.offline_replicas == [2, 3], "a lost directory is offline too"
    old = (await broker.call(metadata, 0, topics=[])).topics[0].partitions[0]
    assert (old.error_code, old.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1)
    assert old.replica_nodes == old.isr_nodes == [1, 3]


@pytest.mark.parametrize(
    ("version", "missing_listener"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
async def test_a_partition_without_a_reachable_leader(broker, version, missing_listener):
    broker.commit([registration(2, listener="INTERNAL")])
    broker.create("elsewhere", (2,))
    broker.create("nobody", (1,), leader=-1)
    elsewhere, nobody = (await broker.call(metadata, version, topics=None)).topics
    assert (elsewhere.error_code, elsewhere.partitions[0].error_code) == (0, missing_listener)
    assert nobody.partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert [topic.partitions[0].leader_id for topic in (elsewhere, nobody)] == [-1, -1]


async def test_unknown_names_when_nothing_may_be_created(broker):
    reply = await broker.call(
        metadata, 9, topics=named("no", "bad name", "__consumer_offsets", ""), allow_auto_topic_creation=False
    )
    assert [(topic.name, topic.error_code, topic.is_internal) for topic in reply.topics] == [
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
    ]
    assert not broker.image.topics


@pytest.mark.parametrize("version", [0, 3, 4, 13])
async def test_a_topic_that_is_asked_for_comes_into_being_and_is_told_at_once(broker, version):
    reply = await broker.call(metadata, version, topics=named("new", "bad name", "__transaction_state", "new"))
    by_name = {topic.name: topic for topic in reply.topics}
    assert len(reply.topics) == 3
    assert (by_name["new"].error_code, [p.leader_id for p in by_name["new"].partitions]) == (0, [1])
    assert by_name["bad name"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert by_name["__transaction_state"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(broker.image.topics) == ["new"]


async def test_two_who_ask_for_a_topic_at_once_both_get_it(broker):
    one, two = await asyncio.gather(*(broker.call(metadata, 9, topics=named("new")) for _ in range(2)))
    assert one == two
    assert one.topics[0].error_code == 0
    assert len([record for record in broker.committed if isinstance(record, r.TopicRecord)]) == 1


async def test_creation_follows_the_brokers_configuration(make_broker):
    broker = make_broker(auto_create_topics_enable="false")
    reply = await broker.call(metadata, 9, topics=named("new"))
    assert reply.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker = make_broker(num_partitions="3")
    reply = await broker.call(metadata, 9, topics=named("new"))
    assert len(reply.topics[0].partitions) == 3


async def test_a_creation_that_fails_leaves_the_topic_unknown(make_broker):
    broker = make_broker(default_replication_factor="3")
    broker.create("a.b")
    reply = await broker.call(metadata, 9, topics=named("new", "a_b", "a.b"))
    assert [topic.error_code for topic in reply.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await broker.call(metadata, 9, topics=named("new"))
    assert reply.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_controller_that_does_not_answer_does_not_hold_the_answer_up(broker, monkeypatch):
    async def silence(api_key, message):
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(metadata, "CREATED_WITHIN_MS", 10)
    broker.parts.controller.ask = silence
    reply = await asyncio.wait_for(broker.call(metadata, 9, topics=named("new")), 5)
    assert reply.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_by_id(broker):
    topic_id, unknown = broker.create("a"), Uuid(b"u" * 16)
    topics = [Topic(name=None, topic_id=topic_id), Topic(name=None, topic_id=unknown), Topic(name=None)]
    reply = await broker.call(metadata, 12, topics=topics)
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in reply.topics] == [
        ("a", topic_id, 0),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_in_versions_that_only_tell_them_are_an_invalid_request(broker, version):
    topic_id = broker.create("a")
    reply = await broker.call(metadata, version, topics=[Topic(name="a", topic_id=topic_id)])
    assert [topic.error_code for topic in reply.topics] == [ErrorCode.INVALID_REQUEST]
    assert reply.brokers == []


# Brokers that were just lost


async def test_a_suspected_leader_is_not_told_as_such(broker):
    broker.commit([registration(2)])
    broker.create("t", (2, 1), (1, 2))
    broker.suspects = frozenset({2})
    for version in (1, 12):
        reply = await broker.call(metadata, version, topics=named("t"))
        assert [(p.error_code, p.leader_id) for p in reply.topics[0].partitions] == [
            (ErrorCode.LEADER_NOT_AVAILABLE, -1),
            (ErrorCode.NONE, 1),
        ]
    broker.suspects = frozenset()
    broker.parts.connections.metadata_seen.forget(0)
    reply = await broker.call(metadata, 12, topics=named("t"))
    assert [p.leader_id for p in reply.topics[0].partitions] == [2, 1], "what was kept is of no suspect"


async def test_a_broker_that_was_just_fenced_is_still_named_and_leads_nothing(broker):
    broker.commit([registration(2), registration(3)])
    broker.create("t", (2, 1))
    broker.commit(
        [r.BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=node_id, fenced=1) for node_id in (2, 3)]
    )
    broker.change(leader=1, isr=(1,))
    broker.departed = frozenset({2, 9})
    reply = await broker.call(metadata, 12, topics=named("t"))
    assert [b.node_id for b in reply.brokers] == [1, 2]
    [partition] = reply.topics[0].partitions
    assert (partition.leader_id, partition.offline_replicas) == (1, [2])
    broker.departed = frozenset()
    reply = await broker.call(metadata, 12, topics=None)
    assert [b.node_id for b in reply.brokers] == [1]
