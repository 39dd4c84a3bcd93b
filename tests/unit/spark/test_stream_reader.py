"""A stream as Spark drives it, on a real node: from batch to batch, through deaths, and what its group shows."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, index"

from __future__ import annotations

import json
import logging

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from strandline.client.blocking import Client, Consumer, ConsumerConfig
from strandline.spark.cluster_view import ClientClusterView
from strandline.spark.errors import DataLoss, OptionError, TopicError
from strandline.spark.stream_reader import RefusedStream
from tests.unit.spark.node_beside import Cluster

from .engine import Checkpoint, Query, life, values


def words(prefix: str, count: int, first: int = 0) -> list[bytes]:
    return [f"{prefix}{n}".encode() for n in range(first, first + count)]


# Batches


def test_what_is_new_comes_once_and_an_idle_topic_gives_back_the_same_text(cluster: Cluster) -> None:
    topic = cluster.make("once", 2)
    cluster.write(topic, [b"a", b"b"], 0)
    checkpoint = Checkpoint()
    with life(cluster.options(subscribe=topic, startingOffsets="earliest"), checkpoint) as query:
        assert values(query.trigger()) == ["a", "b"]
        assert query.trigger() is None
        cluster.write(topic, [b"c"], 1)
        assert values(query.trigger()) == ["c"]
        assert query.trigger() is None
    assert len(checkpoint.planned) == 2


def test_a_stream_starts_at_latest_unless_told_otherwise(cluster: Cluster) -> None:
    topic = cluster.make("latest")
    cluster.write(topic, [b"old"])
    with life(cluster.options(subscribe=topic), Checkpoint()) as query:
        assert query.trigger() == []
        cluster.write(topic, [b"new"])
        assert values(query.trigger()) == ["new"]


def test_a_restart_goes_on_where_the_checkpoint_is(cluster: Cluster) -> None:
    topic = cluster.make("restart")
    options = cluster.options(subscribe=topic, startingOffsets="earliest")
    cluster.write(topic, [b"a"])
    checkpoint = Checkpoint()
    with life(options, checkpoint) as query:
        assert values(query.trigger()) == ["a"]
    cluster.write(topic, [b"b"])
    with life(options, checkpoint) as query:
        assert values(query.trigger()) == ["b"]


def test_a_batch_that_died_is_read_again_and_no_more_than_it(cluster: Cluster) -> None:
    topic = cluster.make("died")
    options = cluster.options(subscribe=topic, startingOffsets="earliest")
    cluster.write(topic, [b"a"])
    checkpoint = Checkpoint()
    with life(options, checkpoint) as query:
        query.trigger()
        cluster.write(topic, [b"b"])
        assert values(query.trigger(dies=True)) == ["b"]
    cluster.write(topic, [b"c"])
    with life(options, checkpoint) as query:
        assert values(query.trigger()) == ["b"]
        assert values(query.trigger()) == ["c"]


@pytest.mark.parametrize("meanwhile", [0, 2])
def test_a_first_batch_from_latest_that_died_loses_nothing(cluster: Cluster, meanwhile: int) -> None:
    """Spark keeps no start of the first batch, and latest is another offset by the time it asks again."""
    topic = cluster.make(f"first-{meanwhile}")
    cluster.write(topic, [b"old"])
    options, checkpoint = cluster.options(subscribe=topic), Checkpoint()
    with life(options, checkpoint) as query:
        query.reader.initialOffset()
        cluster.write(topic, words("in the batch ", meanwhile))
        assert len(query.trigger(dies=True)) == meanwhile
    cluster.write(topic, [b"later"])
    with life(options, checkpoint) as query:
        assert len(query.trigger()) == meanwhile
        assert values(query.trigger()) == ["later"]
        assert query.trigger() is None


def test_partitions_that_are_added_are_read_from_their_beginning(cluster: Cluster) -> None:
    topic = cluster.make("grows")
    with life(cluster.options(subscribe=topic), Checkpoint()) as query:
        assert query.trigger() == []
        assert cluster.admin.create_partitions({topic: 2}) == {topic: None}
        cluster.client.scheduler.run(cluster.client.flow.refresh({topic}))
        cluster.write(topic, [b"a"], 1)
        assert values(query.trigger()) == ["a"]
        assert query.trigger() is None


def test_a_pattern_finds_topics_that_come_later(cluster: Cluster) -> None:
    cluster.make("pattern-one")
    with life(cluster.options(subscribePattern="^pattern-.*"), Checkpoint()) as query:
        assert query.trigger() == []
        cluster.write(cluster.make("pattern-two"), [b"a"])
        assert values(query.trigger()) == ["a"]


def test_assigned_partitions_only(cluster: Cluster) -> None:
    topic = cluster.make("assigned", 3)
    for partition in range(3):
        cluster.write(topic, [b"p%d" % partition], partition)
    options = cluster.options(assign=json.dumps({topic: [0, 2]}), startingOffsets="earliest")
    with life(options, Checkpoint()) as query:
        assert values(query.trigger()) == ["p0", "p2"]


# Limits


def test_a_limit_spreads_over_batches_and_trigger_once_overrules_it(cluster: Cluster) -> None:
    topic = cluster.make("limited")
    cluster.write(topic, words("", 5))
    options = cluster.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=2)
    with life(options, Checkpoint()) as query:
        assert query.limit == ReadMaxRows(2)
        assert [len(query.trigger() or []) for _ in range(3)] == [2, 2, 1]
        cluster.write(topic, words("", 5))
        assert len(query.trigger(once=True)) == 5


def test_bytes_limit_a_batch_by_the_size_of_the_log(cluster: Cluster) -> None:
    topic = cluster.make("bytes")
    for _ in range(4):
        cluster.write(topic, [b"x" * 10_000] * 5)
    options = cluster.options(subscribe=topic, startingOffsets="earliest", maxBytesPerTrigger="50k")
    with life(options, Checkpoint()) as query:
        assert len(query.trigger()) in (4, 5)


def test_available_now_ends_at_what_was_there_when_it_began(cluster: Cluster) -> None:
    topic = cluster.make("now")
    cluster.write(topic, words("", 5))
    options = cluster.options(
        subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=2, minOffsetsPerTrigger=2
    )
    checkpoint = Checkpoint()
    with life(options, checkpoint, available_now=True) as query:
        cluster.write(topic, [b"late"])
        assert values(query.all()) == ["0", "1", "2", "3", "4"]
        assert query.latest[topic]["partitions"] == {"0": 6}
    with life(options, checkpoint, available_now=True) as query:
        assert values(query.all()) == ["late"]


def test_available_now_from_latest_starts_no_batch_that_goes_back(cluster: Cluster) -> None:
    topic = cluster.make("now-latest")
    with life(cluster.options(subscribe=topic), Checkpoint(), available_now=True) as query:
        cluster.write(topic, [b"between target and start"])
        assert query.all() == []


def test_a_partition_that_available_now_does_not_reach_stays_where_it_is(cluster: Cluster) -> None:
    topic = cluster.make("unreached", 2)
    for partition in range(2):
        cluster.write(topic, [b"a"], partition)
    options, checkpoint = cluster.options(subscribe=topic, startingOffsets="earliest"), Checkpoint()
    with life(options, checkpoint) as query:
        query.trigger()
    for partition in range(2):
        cluster.write(topic, [b"b"], partition)
    with life(options, checkpoint, available_now=True) as query:
        del query.reader._target[topic, 1]  # it had no leader to tell its end
        assert [row["partition"] for row in query.all()] == [0]
    with life(options, checkpoint, available_now=True) as query:
        assert [row["partition"] for row in query.all()] == [1]


# Progress of the group


def test_the_group_is_where_finished_batches_ended(cluster: Cluster) -> None:
    topic = cluster.make("lag", 2)
    cluster.write(topic, [b"a", b"b", b"c"], 1)
    options = cluster.options(subscribe=topic, startingOffsets="earliest", groupId="lag", maxOffsetsPerTrigger=2)
    checkpoint = Checkpoint()
    with life(options, checkpoint) as query:
        assert len(query.trigger()) == 2
        assert cluster.committed("lag") == {(topic, 0): 0, (topic, 1): 0}, "the first batch may still be running"
        assert len(query.trigger(dies=True)) == 1
        assert cluster.committed("lag") == {(topic, 0): 0, (topic, 1): 2}
    with life(options, checkpoint) as query:
        assert len(query.trigger()) == 1
        assert query.trigger() is None
        assert cluster.committed("lag") == {(topic, 0): 0, (topic, 1): 3}, "an idle query has no lag"


def test_there_is_no_lag_after_available_now(cluster: Cluster) -> None:
    topic = cluster.make("lag-now")
    cluster.write(topic, [b"a"])
    options = cluster.options(subscribe=topic, startingOffsets="earliest", groupId="lag-now")
    with life(options, Checkpoint(), available_now=True) as query:
        query.all()
    assert cluster.committed("lag-now") == {(topic, 0): 1}


def test_a_new_query_starts_where_its_group_is(cluster: Cluster) -> None:
    topic = cluster.make("group", 2)
    cluster.write(topic, [b"a", b"b"], 0)
    cluster.write(topic, [b"c"], 1)
    options = cluster.options(subscribe=topic, startingOffsets="group", groupId="started", maxOffsetsPerTrigger=1)
    with life(options, Checkpoint()) as query:
        assert len(query.trigger()) == 1
        query.reader.commit(json.loads(query.checkpoint.planned[-1]))
    with life(options | {"maxOffsetsPerTrigger": "9"}, Checkpoint()) as query:
        assert len(query.trigger()) == 2


def test_a_group_with_members_of_its_own_is_refused(cluster: Cluster) -> None:
    topic = cluster.make("members")
    with Client(cluster.bootstrap) as client:
        member = Consumer(client, ConsumerConfig(group_id="members"))
        member.subscribe([topic])
        while not member.assignment():
            member.poll(0.05)
        with (
            life(cluster.options(subscribe=topic, groupId="members"), Checkpoint()) as query,
            pytest.raises(OptionError, match="'groupId': group 'members' has consumers of its own"),
        ):
            query.trigger()
        member.close()


# What is not there


def test_a_topic_that_does_not_exist(cluster: Cluster) -> None:
    with (
        life(cluster.options(subscribe="nowhere"), Checkpoint()) as query,
        pytest.raises(TopicError, match="'subscribe': there is no topic 'nowhere'"),
    ):
        query.trigger()


@pytest.fixture
def recreated(cluster: Cluster, request: pytest.FixtureRequest):
    """A topic that a stream has read to offset 2, and that is another one by now."""
    topic = cluster.make(request.node.name)
    cluster.write(topic, [b"a", b"b"])
    checkpoint = Checkpoint()
    options = cluster.options(subscribe=topic, startingOffsets="earliest", fetchOffset_retryIntervalMs=0)
    with life(options, checkpoint) as query:
        query.trigger()
    cluster.remove(topic)
    cluster.make(topic)
    cluster.write(topic, [b"c", b"d", b"e"])
    return options, checkpoint


def test_a_recreated_topic_is_refused_and_not_read_on(recreated) -> None:
    options, checkpoint = recreated
    with life(options, checkpoint) as query, pytest.raises(DataLoss, match="deleted and created again"):
        query.trigger()


def test_a_recreated_topic_is_read_from_its_beginning_if_losses_are_allowed(
    recreated, caplog: pytest.LogCaptureFixture
) -> None:
    options, checkpoint = recreated
    with (
        caplog.at_level(logging.WARNING, "strandline.spark"),
        life(options | {"failOnDataLoss": "false"}, checkpoint) as query,
    ):
        assert values(query.trigger()) == ["c", "d", "e"]
    assert "deleted and created again" in caplog.text


def test_a_group_keeps_no_offset_of_the_topic_that_was(cluster: Cluster, recreated) -> None:
    options, checkpoint = recreated
    grouped = options | {"failOnDataLoss": "false", "groupId": "recreated"}
    with life(grouped, checkpoint) as query:
        assert values(query.trigger()) == ["c", "d", "e"]
        assert cluster.committed("recreated") == {}, "offset 2 was one of the old topic"
        assert query.trigger() is None
        assert list(cluster.committed("recreated").values()) == [3]


def test_records_that_were_deleted_are_an_error_or_a_warning(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.make("deleted")
    cluster.write(topic, words("", 2))
    options, checkpoint = cluster.options(subscribe=topic, startingOffsets="earliest"), Checkpoint()
    with life(options, checkpoint) as query:
        query.trigger()
        cluster.write(topic, words("", 4, 2))
        cluster.admin.delete_records({(topic, 0): 5})
        with pytest.raises(DataLoss, match=r"deleted-0 has no offset 2 any more: its log starts at 5"):
            query.trigger()
    with (
        caplog.at_level(logging.WARNING, "strandline.spark"),
        life(options | {"failOnDataLoss": "false"}, checkpoint) as query,
    ):
        assert values(query.trigger()) == ["5"]
    assert "deleted-0 has no offset 2" in caplog.text


class SlowLeader(ClientClusterView):
    """A new leader that has not heard yet how far its log is committed, and says so `times` times."""

    times = 2

    def latest(self, partitions):
        self.times -= 1
        return dict.fromkeys(partitions, 1) if self.times >= 0 else super().latest(partitions)


@pytest.mark.parametrize("planned_before", [False, True], ids=["of the next batch", "of a batch from the checkpoint"])
def test_an_end_before_what_was_read_is_asked_for_again(cluster: Cluster, planned_before: bool) -> None:
    topic = cluster.make(f"slow-leader-{planned_before}")
    cluster.write(topic, [b"a", b"b"])
    options = cluster.options(subscribe=topic, startingOffsets="earliest", fetchOffset_retryIntervalMs=0)
    checkpoint = Checkpoint()
    with life(options, checkpoint) as query:
        query.trigger(dies=planned_before)
    cluster.write(topic, [b"c"])
    with life(options, checkpoint) as query:
        query.reader._sight_of_cluster = SlowLeader(cluster.client)
        assert values(query.trigger()) == (["a", "b"] if planned_before else ["c"])


class YoungBroker(ClientClusterView):
    """A broker that has not heard of any topic yet, `times` times."""

    times = 2

    def topics(self, names):
        self.times -= 1
        return {} if self.times >= 0 else super().topics(names)


@pytest.mark.parametrize("planned_before", [False, True], ids=["of the next batch", "of a batch from the checkpoint"])
def test_a_topic_that_is_gone_is_asked_for_again(cluster: Cluster, planned_before: bool) -> None:
    topic = cluster.make(f"young-broker-{planned_before}")
    options = cluster.options(subscribe=topic, startingOffsets="earliest", fetchOffset_retryIntervalMs=0)
    checkpoint = Checkpoint()
    with life(options, checkpoint) as query:
        query.trigger()
        cluster.write(topic, [b"a"])
        query.trigger(dies=planned_before)
    cluster.write(topic, [b"b"])
    with life(options, checkpoint) as query:
        query.reader._sight_of_cluster = YoungBroker(cluster.client)
        assert values(query.trigger()) == (["a"] if planned_before else ["b"])


# Options


def test_wrong_options_of_a_stream_are_told_by_what_spark_calls_first(cluster: Cluster) -> None:
    options = cluster.options(subscribe="t", endingOffsets="latest")
    for available_now in (True, False):
        with pytest.raises(OptionError, match="'endingOffsets' is one of batch queries"):
            Query(options, Checkpoint(), available_now=available_now)
    refused = RefusedStream(OptionError("why"))
    with pytest.raises(OptionError, match="why"):
        refused.latestOffset({}, ReadMaxRows(1))


def test_an_empty_range_has_no_partitions(cluster: Cluster) -> None:
    topic = cluster.make("empty")
    with life(cluster.options(subscribe=topic), Checkpoint()) as query:
        start = query.reader.initialOffset()
        assert query.reader.partitions(start, start) == []
