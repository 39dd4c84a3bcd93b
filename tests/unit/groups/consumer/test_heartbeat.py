"""ConsumerGroupHeartbeat: what a member says, what it is told, what is written, and when."""

from __future__ import annotations

from strandline.wire import messages
from tests.unit.groups.consumer.transcript import CONSUMER_GROUP_HEARTBEAT, GROUP, Stage, play


def test_a_member_that_says_everything_again_is_told_its_assignment_again() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        again a
            a: epoch 2, t:0,1
        beat a topics=t
            a: epoch 2
        """
    )


def test_a_member_in_another_epoch_is_fenced_unless_the_answer_may_have_been_lost() -> None:
    play(
        """
        topics t=2
        beat a epoch=3
            a: GROUP_ID_NOT_FOUND
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        beat a epoch=1
            a: FENCED_MEMBER_EPOCH
        beat a epoch=3
            a: FENCED_MEMBER_EPOCH
        beat b epoch=2
            b: UNKNOWN_MEMBER_ID
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0
        ack a
            log: current a
            a: epoch 3
        beat a epoch=2 owns=t:0
            a: epoch 3
        beat a epoch=2 owns=t:0,1
            a: FENCED_MEMBER_EPOCH
        beat a epoch=2
            a: FENCED_MEMBER_EPOCH
        beat a epoch=1 owns=t:0
            a: FENCED_MEMBER_EPOCH
        leave c
            c: UNKNOWN_MEMBER_ID
        leave a
            log: -current a, -target a, -member a, group 4
            a: epoch -1
        leave a
            a: UNKNOWN_MEMBER_ID
        leave b
            log: -current b, -target b, -member b, group 5, target@5
            b: epoch -1
        status
            Empty, group 5, target 5
        join b
            log: member b, group 6, target b, target@6, current b
            b: epoch 6, t:0,1
        """
    )


def test_a_change_of_topics_is_a_new_epoch_and_takes_away_at_once_what_is_no_longer_wanted() -> None:
    play(
        """
        topics t=2 u=2
        join a topics=t,u
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1+u:0,1
        join b topics=t,u
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        ack a
            log: current a
            a: epoch 2, t:0,1
        ack a
            log: current a
            a: epoch 3
        ack b
            log: current b
            b: epoch 3, u:0,1
        status
            Stable, group 3, target 3
            a 3 STABLE t:0,1
            b 3 STABLE u:0,1
        beat a topics=t
            log: member a, group 4, target@4, current a
            a: epoch 4
        status
            Reconciling, group 4, target 4
            a 4 STABLE t:0,1
            b 3 STABLE u:0,1
        ack a
            a: epoch 4
        ack b
            log: current b
            b: epoch 4
        ack a
            a: epoch 4
        ack b
            b: epoch 4
        status
            Stable, group 4, target 4
            a 4 STABLE t:0,1
            b 4 STABLE u:0,1
        beat b topics=-
            log: member b, group 5, target b, target@5, current b
            b: epoch 4, -
        ack b
            log: current b
            b: epoch 5
        ack a
            log: current a
            a: epoch 5
        status
            Stable, group 5, target 5
            a 5 STABLE t:0,1
            b 5 STABLE -
        """
    )


def test_topics_that_come_go_or_grow_are_a_new_epoch_with_the_next_heartbeat() -> None:
    play(
        """
        topics t=1 u=1
        join a topics=t,u,v
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0+u:0
        beat a
            a: epoch 2
        topics t=2 u=1
        beat a
            log: group 3, target a, target@3, current a
            a: epoch 3, t:0,1+u:0
        topics t=2
        beat a
            log: group 4, target a, target@4, current a
            a: epoch 3, t:0,1
        topics t'=2
        beat a
            log: group 5, target a, target@5
            a: epoch 3
        ack a
            log: current a
            a: epoch 3, -
        topics t'=2 x=5
        beat a
            a: epoch 3
        topics t'=2 x=5 v=1
        beat a
            log: group 6, target a, target@6
            a: epoch 3
        topics t'=2 v=1 racks=r1,r2
        beat a
            log: group 7, target@7
            a: epoch 3
        beat a
            a: epoch 3
        """
    )


def test_targets_are_not_computed_more_often_than_the_assignment_interval_allows() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        tick 0.1
        join b topics=t
            log: member b, group 3, current b
            b: epoch 2, -
        beat a
            a: epoch 2
        status
            Assigning, group 3, target 2
            a 2 STABLE t:0,1
            b 2 STABLE -
        tick 1
        beat a
            log: target a, target b, target@3, current a
            a: epoch 2, t:0
        beat b
            log: current b
            b: epoch 3
        leave a
            log: -current a, -target a, -member a, group 4
            a: epoch -1
        leave b
            log: -current b, -target b, -member b, group 5, target@5
            b: epoch -1
        join b
            log: member b, group 6, target b, target@6, current b
            b: epoch 6, t:0,1
        """,
        group_consumer_assignment_interval_ms="1000",
    )


def test_most_members_assignor_is_taken_and_must_be_served() -> None:
    play(
        """
        topics t=2
        join a topics=t assignor=sticky
            a: UNSUPPORTED_ASSIGNOR
        join a topics=t assignor=range
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        describe
            Stable 2/2 by range
            a instance=None rack=None 2 client-a/127.0.0.1 wants t has t:0,1 target t:0,1 type 1
        beat a assignor=uniform
            log: member a, group 3, target@3, current a
            a: epoch 3
        describe
            Stable 3/3 by uniform
            a instance=None rack=None 3 client-a/127.0.0.1 wants t has t:0,1 target t:0,1 type 1
        """
    )


def test_a_full_group_takes_nobody_but_those_it_knows() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t instance=i
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        join c topics=t
            c: GROUP_MAX_SIZE_REACHED
        join a
            log: current a
            a: epoch 3, t:0
        away b
            log: current b
            b: epoch -2
        join d topics=t instance=i
            log: -current b, -target b, -member b, member d, target d, current d, member d, current d
            d: epoch 3, t:1
        """,
        group_consumer_max_size="2",
    )


def test_an_answer_waits_until_what_it_tells_is_committed() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        hold
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
        beat a
            log: current a
        again a owns=t:0,1
        commit
            b: epoch 3, -
            a: epoch 2, t:0
            a: epoch 2, t:0
        """
    )


def test_a_refresh_that_could_not_be_written_is_done_again() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        topics t=3
        refuse NOT_ENOUGH_REPLICAS
        beat a
            a: COORDINATOR_NOT_AVAILABLE
        accept
        beat a
            log: group 3, target a, target@3, current a
            a: epoch 3, t:0,1,2
        """
    )


def test_what_can_not_be_committed_is_told_in_terms_of_the_coordinator() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        hold
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
        fail NOT_COORDINATOR
            b: NOT_COORDINATOR
        hold
        join c topics=t
            log: member c, group 4, target c, target@4, current c
        fail REQUEST_TIMED_OUT
            c: COORDINATOR_NOT_AVAILABLE
        """
    )


def test_before_version_1_a_member_may_be_given_its_id() -> None:
    stage = Stage()
    stage.perform("topics t=1")
    request = messages.request(CONSUMER_GROUP_HEARTBEAT)(
        group_id=GROUP, member_id="", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    response = stage.driver.call("consumer_group_heartbeat", request, version=0).response
    assert [response.member_id] == list(stage.group.members)
    assert len(response.member_id) == 22
    assert response.heartbeat_interval_ms == 5000
