"""ElectLeaders: preferred leaders, and whoever is there where nobody leads."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import elect_leaders
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.records import NO_LEADER
from strandline.wire import messages

from .conftest import registration

Request = messages.request(43)


def named(**topics):
    return [Request.TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics.items()]


async def elect(broker, version, kind=0, topics=None):
    reply = await broker.call(elect_leaders, version, election_type=kind, topic_partitions=topics)
    return reply, {
        (topic.topic, result.partition_id): result.error_code
        for topic in reply.replica_election_results
        for result in topic.partition_result
    }


@pytest.fixture
def cluster(broker):
    """Two partitions that the second replica leads, one that the first does, one that nobody does."""
    broker.commit([registration(2), registration(3, fenced=True)])
    broker.create("other", (1, 2), (1, 2), leader=2)
    broker.create("first", (1, 2))
    broker.create("none", (3,), leader=NO_LEADER)
    broker.create("wide", (3, 2), leader=2)
    return broker


@pytest.mark.parametrize("version", elect_leaders.VERSIONS)
async def test_preferred_leaders_in_every_version(cluster, version):
    topics = named(other=[0, 5], first=[0], none=[0], wide=[0], no=[0])
    reply, codes = await elect(cluster, version, topics=topics)
    assert codes == {
        ("other", 0): 0,
        ("other", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("first", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("none", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("wide", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert reply.replica_election_results[0].partition_result[0].error_message is None
    assert [partition.leader for partition in cluster.image.topics["other"].partitions] == [1, 2]


async def test_all_that_need_it(cluster):
    _, codes = await elect(cluster, 2)
    assert codes == {
        ("other", 0): 0,
        ("other", 1): 0,
        ("none", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("wide", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


async def test_whoever_is_there(cluster):
    cluster.create("lost", (3, 2), leader=NO_LEADER)
    cluster.commit([])
    _, codes = await elect(cluster, 1, kind=1)
    assert codes == {("none", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, ("lost", 0): 0}
    assert cluster.image.topics["lost"].partitions[0].leader == 2


async def test_a_partition_that_is_named_twice_is_elected_for_once(cluster):
    _, codes = await elect(cluster, 2, topics=named(other=[0, 0]))
    assert codes == {("other", 0): 0}
    assert cluster.image.topics["other"].partitions[0].leader_epoch == 1


@pytest.mark.parametrize("version", elect_leaders.VERSIONS)
async def test_without_a_controller(cluster, version):
    cluster.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply, codes = await elect(cluster, version, topics=named(other=[0]))
    assert codes == {("other", 0): ErrorCode.NOT_CONTROLLER}
    if version >= 1:
        assert reply.error_code == ErrorCode.NOT_CONTROLLER


async def test_an_election_of_no_kind(cluster):
    reply, codes = await elect(cluster, 2, kind=2, topics=named(other=[0]))
    assert reply.error_code == codes["other", 0] == ErrorCode.INVALID_REQUEST
