"""Static members: who has an instance id, and who takes its place."""

from __future__ import annotations

from tests.unit.groups.consumer.transcript import play


def test_a_static_member_that_left_for_a_while_is_replaced_without_a_new_epoch() -> None:
    play(
        """
        topics t=2
        join a topics=t instance=i
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t instance=i       # a is still there
            b: UNRELEASED_INSTANCE_ID
        beat b instance=i
            b: FENCED_INSTANCE_ID
        away a
            log: current a
            a: epoch -2
        status
            Reconciling, group 2, target 2
            a -2 STABLE t:0,1
        beat a epoch=2
            a: FENCED_MEMBER_EPOCH
        join b
            log: -current a, -target a, -member a, member b, target b, current b, member b, current b
            b: epoch 2, t:0,1
        status
            Stable, group 2, target 2
            b 2 STABLE t:0,1
        beat a epoch=2
            a: FENCED_INSTANCE_ID
        away b id=a
            b: FENCED_INSTANCE_ID
        leave b
            log: -current b, -target b, -member b, group 3, target@3
            b: epoch -1
        status
            Empty, group 3, target 3
        """
    )


def test_a_static_member_may_join_twice_if_it_is_the_same_process() -> None:
    play(
        """
        topics t=2
        join a topics=t instance=i
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join a
            a: epoch 2, t:0,1
        beat a instance=j
            a: UNKNOWN_MEMBER_ID
        """
    )


def test_who_is_away_keeps_no_partition_that_it_was_to_let_go_of() -> None:
    play(
        """
        topics t=2
        join a topics=t instance=i
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0
        away a
            log: current a
            a: epoch -2
        beat b
            log: current b
            b: epoch 3, t:1
        join c topics=t instance=i
            log: -current a, -target a, -member a, member c, target c, current c, member c, current c
            c: epoch 3, t:0
        status
            Stable, group 3, target 3
            b 3 STABLE t:1
            c 3 STABLE t:0
        """
    )
