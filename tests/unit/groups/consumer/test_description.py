"""ConsumerGroupDescribe: everything that a member is responsible for, and its target."""

from __future__ import annotations

from tests.unit.groups.consumer.transcript import play


def test_a_group_is_described_with_what_members_have_and_are_to_have() -> None:
    play(
        """
        describe
            GROUP_ID_NOT_FOUND: Group g not found.
        topics t=2
        join a topics=t instance=i rack=r
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b regex=t
            log: member b, regex t, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0
        describe
            Reconciling 3/3 by uniform
            a instance=i rack=r 2 client-a/127.0.0.1 wants t has t:0,1 target t:0 type 1
            b instance=None rack=None 3 client-b/127.0.0.1 wants /t/ has - target t:1 type 1
        """
    )
