from __future__ import annotations

from strandline.histories.judges.replication.maximal_isr import MaximalIsr
from strandline.ids import ZERO_UUID
from strandline.replica.isr_state import ProposedIsr

from .stage import broken, stage


def test_who_is_to_join_counts_at_once_and_who_is_to_leave_as_long_as_that_is_open() -> None:
    story = stage(MaximalIsr)
    story.propose(1, n1=1, n2=2)
    assert set(story.partition(1).leadership.isr.maximal) == {1, 2, 3}


def test_without_a_wish_the_maximal_isr_is_the_isr() -> None:
    story = stage(MaximalIsr)
    story.partition(1).leadership.isr.maximal = (1, 2)
    with broken(MaximalIsr):
        story.look(1)


def test_a_leader_may_not_forget_whom_the_controller_may_elect() -> None:
    story = stage(MaximalIsr)
    isr = story.partition(1).leadership.isr
    isr.propose(ProposedIsr(ZERO_UUID, 0, 0, 0, ((1, 1), (2, 2)), 0, ""))
    isr.maximal = (1, 2)
    with broken(MaximalIsr):
        story.look(1)


def test_the_controller_adds_nobody_of_whom_the_leader_does_not_know() -> None:
    story = stage(MaximalIsr)
    story.publish(isr=(1, 2), partition_epoch=1)
    story.lead(1, 0)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    with broken(MaximalIsr):
        story.look(1)
