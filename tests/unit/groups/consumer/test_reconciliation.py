"""Reconciliation: step by step from what a member has to what it is to have."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.member import ConsumerGroupMember, ConsumerGroupMemberState, OwnedPartitions
from strandline.groups.consumer.reconciliation import MemberTarget, reconcile
from strandline.ids import Uuid
from tests.unit.groups.consumer.transcript import play

T, U = Uuid(b"t" * 16), Uuid(b"u" * 16)


def step(
    member: ConsumerGroupMember,
    target: MemberTarget,
    owned: OwnedPartitions | None,
    *,
    changed: bool = False,
    others: OwnedPartitions | None = None,
) -> ConsumerGroupMember:
    """Of a member that subscribes to t alone; others have what `others` says."""

    def owner(topic_id: Uuid, partition: int) -> str | None:
        if member.is_responsible_for(topic_id, partition):
            return member.member_id
        return "other" if partition in (others or {}).get(topic_id, ()) else None

    return reconcile(member, target, subscribed_topic_ids={T}, owner=owner, owned=owned, subscription_changed=changed)


def test_partitions_move_once_their_owner_has_let_go() -> None:
    play(
        """
        topics t=6
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1,2,3,4,5
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        join c topics=t
            log: member c, group 4, target a, target b, target c, target@4, current c
            c: epoch 4, -
        beat a
            log: current a
            a: epoch 2, t:0,1
        beat b
            log: current b
            b: epoch 4
        beat c
            c: epoch 4
        status
            Reconciling, group 4, target 4
            a 2 UNREVOKED t:0,1, revoking t:2,3,4,5
            b 4 UNRELEASED -
            c 4 UNRELEASED -
        ack a
            log: current a
            a: epoch 4
        beat b
            log: current b
            b: epoch 4, t:3,4
        beat c
            log: current c
            c: epoch 4, t:2,5
        ack b
            b: epoch 4
        ack c
            c: epoch 4
        status
            Stable, group 4, target 4
            a 4 STABLE t:0,1
            b 4 STABLE t:3,4
            c 4 STABLE t:2,5
        beat a
            a: epoch 4
        beat b
            b: epoch 4
        beat c
            c: epoch 4
        """
    )


def test_a_member_follows_the_newest_target_once_it_has_let_go_of_what_the_old_one_took() -> None:
    play(
        """
        topics t=4
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1,2,3
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0,1
        join c topics=t
            log: member c, group 4, target a, target c, target@4, current c
            c: epoch 4, -
        beat a                           # first it has to let go of what it was asked for
            a: epoch 2
        ack a
            log: current a
            a: epoch 2, t:0
        ack a
            log: current a
            a: epoch 4
        ack b
            log: current b
            b: epoch 4, t:2,3
        ack c
            log: current c
            c: epoch 4, t:1
        status
            Stable, group 4, target 4
            a 4 STABLE t:0
            b 4 STABLE t:2,3
            c 4 STABLE t:1
        """
    )


def test_what_it_is_to_let_go_of_may_be_given_back() -> None:
    member = ConsumerGroupMember(
        "a",
        3,
        2,
        ConsumerGroupMemberState.UNREVOKED_PARTITIONS,
        assigned_partitions={T: {0: 2}},
        partitions_pending_revocation={T: {1: 2}},
    )
    target = MemberTarget(5, {T: frozenset({0, 1})})
    assert step(member, target, {T: frozenset({0, 1})}) is member
    back = step(member, target, {T: frozenset({0})})
    assert (back.member_epoch, back.state) == (5, ConsumerGroupMemberState.STABLE)
    assert back.assigned_partitions == {T: {0: 2, 1: 5}}


def test_who_says_nothing_of_its_partitions_has_them_still() -> None:
    member = ConsumerGroupMember("a", 3, assigned_partitions={T: {0: 3}})
    told = step(member, MemberTarget(4, {}), None)
    assert told.state is ConsumerGroupMemberState.UNREVOKED_PARTITIONS
    assert told.partitions_pending_revocation == {T: {0: 3}}
    assert step(told, MemberTarget(4, {}), None) is told
    assert step(told, MemberTarget(4, {}), {}).is_reconciled_to(4)


def test_a_topic_that_it_no_longer_wants_goes_at_once() -> None:
    member = ConsumerGroupMember("a", 3, assigned_partitions={T: {0: 3}, U: {0: 3}})
    target = MemberTarget(3, {T: frozenset({0}), U: frozenset({0})})
    assert step(member, target, None) is member
    narrowed = step(member, target, None, changed=True)
    assert (narrowed.member_epoch, narrowed.state) == (3, ConsumerGroupMemberState.UNREVOKED_PARTITIONS)
    assert (narrowed.assigned_partitions, narrowed.partitions_pending_revocation) == ({T: {0: 3}}, {U: {0: 3}})
    assert step(member, target, {T: frozenset({0})}, changed=True).assigned_partitions == {T: {0: 3}}


def test_waiting_for_others_changes_nothing() -> None:
    target = MemberTarget(4, {T: frozenset({0, 1})})
    waiting = step(ConsumerGroupMember("a", 3, assigned_partitions={T: {0: 3}}), target, {}, others={T: frozenset({1})})
    assert (waiting.member_epoch, waiting.state) == (4, ConsumerGroupMemberState.UNRELEASED_PARTITIONS)
    assert step(waiting, target, None, others={T: frozenset({1})}) is waiting
    assert step(waiting, target, None).assigned_partitions == {T: {0: 3, 1: 4}}


def test_a_member_in_an_unknown_state_has_to_come_back_with_nothing() -> None:
    member = ConsumerGroupMember("a", 3, state=ConsumerGroupMemberState.UNKNOWN, assigned_partitions={T: {0: 3}})
    with pytest.raises(KafkaError) as raised:
        step(member, MemberTarget(4, {}), None)
    assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(member, MemberTarget(4, {}), {}).is_reconciled_to(4)
