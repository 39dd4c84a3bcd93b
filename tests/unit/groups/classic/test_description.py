"""What DescribeGroups shows."""

from __future__ import annotations

from strandline.groups.caller import Caller
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.migration import embedded_protocol
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from tests.unit.groups.classic.transcript import Stage, play


def test_a_group_in_every_state() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        describe
            PreparingRebalance consumer
            a a /127.0.0.1 without metadata, assigned nothing
        tick 3
            a join: generation 1 range, leader a, members a
        describe
            CompletingRebalance consumer
            a a /127.0.0.1 without metadata, assigned nothing
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        describe
            Stable consumer range
            a a /127.0.0.1 with metadata, assigned 0
        leave a
            log: generation 2, empty
            a leave: NONE
        describe
            Empty consumer
    """)


def test_no_group() -> None:
    play("""
        describe 5
            Dead
        describe 6
            Dead GROUP_ID_NOT_FOUND: Group g not found.
    """)


def test_a_group_of_the_consumer_protocol_is_shown_in_classic_words() -> None:
    stage = Stage()
    group = stage.driver.shard.groups["g"] = ConsumerGroup("g")
    stage.perform("describe 5")
    assert stage.lines[1::2] == ["    Empty consumer"]
    topic = TopicImage("t", Uuid(b"t" * 16), (PartitionImage((1,), (1,), 1, 0, 0),))
    image = MetadataImage(topics={topic.name: topic}, topics_by_id={topic.topic_id: topic})
    stage.driver.around.image = image
    group.put_member(
        ConsumerGroupMember(
            "m",
            client_id="c",
            client_host="/127.0.0.1",
            subscribed_topic_names=frozenset({topic.name}),
            assigned_partitions={topic.topic_id: {0: 1}},
        )
    )
    (member,) = stage.driver.shard.describe_group("g", Caller("admin", "/127.0.0.1", 6)).members
    assert (member.member_id, member.client_id, member.client_host) == ("m", "c", "/127.0.0.1")
    assert embedded_protocol.subscription(member.member_metadata, image).topics == (topic.name,)
    assert embedded_protocol.assignment(member.member_assignment, image).partitions == {topic.topic_id: frozenset({0})}
