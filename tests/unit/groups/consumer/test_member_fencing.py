"""Sessions and rebalance timeouts: who is silent, or does not let go, is fenced."""

from __future__ import annotations

from tests.unit.groups.consumer.transcript import play


def test_a_keep_alive_extends_the_session() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        tick 40
        beat a
            a: epoch 2
        tick 44
        beat a
            a: epoch 2
        tick 44
        status
            Stable, group 2, target 2
            a 2 STABLE t:0,1
        tick 1
            log: -current a, -target a, -member a, group 3, target@3
        status
            Empty, group 3, target 3
        beat a
            a: UNKNOWN_MEMBER_ID
        """
    )


def test_a_silent_member_is_fenced_and_the_others_go_on() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        tick 40
        ack a
            log: current a
            a: epoch 2, t:0
        tick 5
            log: -current b, -target b, -member b, group 4
        status
            Assigning, group 4, target 3
            a 2 UNREVOKED t:0, revoking t:1
        """
    )


def test_a_member_that_does_not_let_go_in_time_is_fenced_however_often_it_is_heard_from() -> None:
    play(
        """
        topics t=2
        join a topics=t rebalance=30
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0
        tick 20
        beat a
            a: epoch 2
        beat b
            b: epoch 3
        tick 10
            log: -current a, -target a, -member a, group 4
        status
            Assigning, group 4, target 3
            b 3 UNRELEASED -
        beat a
            a: UNKNOWN_MEMBER_ID
        beat b
            log: target b, target@4, current b
            b: epoch 4, t:0,1
        join a
            log: member a, group 5, target b, target a, target@5, current a
            a: epoch 5, -
        """
    )


def test_a_static_member_that_does_not_come_back_is_fenced() -> None:
    play(
        """
        topics t=2
        join a topics=t instance=i
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        away a
            log: current a
            a: epoch -2
        tick 44
        beat b
            b: epoch 3
        tick 1
            log: -current a, -target a, -member a, group 4
        status
            Assigning, group 4, target 3
            b 3 UNRELEASED -
        beat b
            log: target b, target@4, current b
            b: epoch 4, t:0,1
        """
    )


def test_a_fencing_that_could_not_be_written_is_tried_again() -> None:
    play(
        """
        topics t=2
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        beat a
            a: epoch 2
        refuse NOT_ENOUGH_REPLICAS
        beat a                           # a keep-alive writes nothing
            a: epoch 2
        join b topics=t
            b: COORDINATOR_NOT_AVAILABLE
        topics t=3
        beat a
            a: COORDINATOR_NOT_AVAILABLE
        leave a
            a: COORDINATOR_NOT_AVAILABLE
        tick 46
        status
            Stable, group 2, target 2
            a 2 STABLE t:0,1
        accept
        tick 0.5
            log: -current a, -target a, -member a, group 3, target@3
        status
            Empty, group 3, target 3
        """
    )


def test_a_member_that_could_not_be_told_to_let_go_has_nothing_to_let_go_of() -> None:
    play(
        """
        topics t=2
        join a topics=t rebalance=30
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        refuse NOT_ENOUGH_REPLICAS
        beat a
            a: COORDINATOR_NOT_AVAILABLE
        accept
        tick 30
        beat a
            log: current a
            a: epoch 2, t:0
        """
    )
