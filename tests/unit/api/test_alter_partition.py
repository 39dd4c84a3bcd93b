"""AlterPartition: a leader's ISR, as the controller answers it."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import alter_partition
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire import messages

from .conftest import registration

Request = messages.request(56)


def wanted(topic_id, version, *partitions):
    """Index, leader epoch, partition epoch, ISR (and broker epochs if they are not the brokers' own)."""
    return Request.TopicData(
        topic_id=topic_id,
        partitions=[
            Request.PartitionData(
                partition_index=index,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                new_isr=list(isr) if version < 3 else [],
                new_isr_with_epochs=[
                    Request.BrokerState(broker_id=member, broker_epoch=epochs.get(member, member)) for member in isr
                ]
                if version >= 3
                else [],
            )
            for index, leader_epoch, partition_epoch, isr, epochs in partitions
        ],
    )


async def alter(broker, version, *topics, sender=1, epoch=1):
    return await broker.call(alter_partition, version, broker_id=sender, broker_epoch=epoch, topics=list(topics))


@pytest.fixture
def three(broker):
    broker.commit([registration(2), registration(3)])
    return broker


@pytest.mark.parametrize("version", alter_partition.VERSIONS)
async def test_an_isr_in_every_version(three, version):
    topic_id = three.create("t", (1, 2, 3), leader_epoch=4)
    reply = await alter(three, version, wanted(topic_id, version, (0, 4, 0, (1, 3), {})))
    assert reply.error_code == 0
    [topic] = reply.topics
    [answer] = topic.partitions
    assert topic.topic_id == topic_id
    assert (answer.partition_index, answer.error_code) == (0, 0)
    assert (answer.leader_id, answer.leader_epoch, answer.isr, answer.partition_epoch) == (1, 4, [1, 3], 1)
    assert three.image.topics["t"].partitions[0].isr == (1, 3)


async def test_each_partition_has_its_answer(three):
    topic_id, other = three.create("t", (1, 2), (2, 1), (1, 2)), Uuid(b"x" * 16)
    reply = await alter(
        three,
        3,
        wanted(topic_id, 3, (0, 0, 0, (1,), {}), (1, 0, 0, (1, 2), {}), (2, 0, 0, (1, 2), {2: 9}), (7, 0, 0, (1,), {})),
        wanted(other, 3, (0, 0, 0, (1,), {})),
    )
    assert [[answer.error_code for answer in topic.partitions] for topic in reply.topics] == [
        [0, ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_ID],
    ]
    assert [partition.isr for partition in three.image.topics["t"].partitions] == [(1,), (2, 1), (1, 2)]


async def test_a_broker_epoch_that_is_not_told_is_not_asked_for(three):
    topic_id = three.create("t", (1, 2))
    reply = await alter(three, 3, wanted(topic_id, 3, (0, 0, 0, (1, 2), {2: -1})))
    assert reply.topics[0].partitions[0].error_code == 0


async def test_the_whole_is_refused(three):
    topic_id = three.create("t", (1, 2))
    topic = wanted(topic_id, 3, (0, 0, 0, (1,), {}))
    reply = await alter(three, 3, topic, epoch=2)
    assert (reply.error_code, reply.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    three.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await alter(three, 3, topic)
    assert (reply.error_code, reply.topics) == (ErrorCode.NOT_CONTROLLER, [])


async def test_the_policy_is_the_clusters(three):
    topic_id = three.create("t", (1, 2), configs={"min.insync.replicas": "2"})
    three.commit([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)])
    await alter(three, 3, wanted(topic_id, 3, (0, 0, 0, (1,), {})))
    assert three.image.topics["t"].partitions[0].elr == (2,)
