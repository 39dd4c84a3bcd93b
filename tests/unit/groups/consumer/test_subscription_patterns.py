"""Subscriptions by pattern: resolved, refreshed, forgotten."""

from __future__ import annotations

from tests.unit.groups.consumer.transcript import play


def test_patterns_are_resolved_as_they_come_and_forgotten_with_the_last_that_has_them() -> None:
    play(
        """
        topics t1=1 t2=1 u=1
        join a regex=t.*
            log: member a, regex t.*, group 2, target a, target@2, current a
            a: epoch 2, t1:0+t2:0
        join b regex=(
            b: INVALID_REGULAR_EXPRESSION
        join b regex=t.* topics=u
            log: member b, group 3, target b, target@3, current b
            b: epoch 3, u:0
        ack a
            log: current a
            a: epoch 3
        topics t1=1 t2=1 t3=1 u=1
        beat a                           # not again so soon
            a: epoch 3
        tick 10
        beat a
            log: regex t.*, group 4, target b, target@4, current a
            a: epoch 4
        beat b
            log: current b
            b: epoch 4, t3:0+u:0
        beat a regex=
            log: member a, group 5, target a, target b, target@5, current a
            a: epoch 4, -
        ack a
            log: current a
            a: epoch 5
        leave b
            log: -current b, -target b, -member b, -regex t.*, group 6
            b: epoch -1
        """
    )


def test_a_new_coordinator_looks_at_the_topics_anew() -> None:
    play(
        """
        topics t1=1
        join a regex=t.*
            log: member a, regex t.*, group 2, target a, target@2, current a
            a: epoch 2, t1:0
        reload
        topics t1=1 t2=1
        beat a
            log: regex t.*, group 3, target a, target@3, current a
            a: epoch 3, t1:0+t2:0
        reload
        beat a
            a: epoch 3
        """
    )
