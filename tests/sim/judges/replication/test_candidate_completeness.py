from __future__ import annotations

from strandline.histories.judges.replication.candidate_completeness import CandidateCompleteness

from .stage import KEY, Stage, broken, committed_by_all, stage


def committed(story: Stage, end_offset: int) -> None:
    story.observed.committed[KEY].end_offset = end_offset


def test_who_may_be_elected_has_all_that_is_committed() -> None:
    story = stage(CandidateCompleteness)
    committed_by_all(story, "a")
    committed(story, 1)
    story.cut(2, 1)
    with broken(CandidateCompleteness):
        story.cut(2, 0)


def test_one_out_of_sync_may_lag_until_it_joins() -> None:
    story = stage(CandidateCompleteness)
    story.append(1, "a")
    story.append(2, "a")
    story.publish(isr=(1, 2), partition_epoch=1)
    committed(story, 1)
    story.commit(1, 1)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    with broken(CandidateCompleteness):
        story.look(1)


def test_a_member_that_restarted_is_not_what_the_controller_knows() -> None:
    story = stage(CandidateCompleteness)
    committed_by_all(story, "a")
    committed(story, 1)
    story.members[2].broker_epoch = 7
    story.restart(2, power_lost=True, end=0)


def test_an_eligible_replica_counts_as_a_candidate() -> None:
    story = stage(CandidateCompleteness)
    committed_by_all(story, "a")
    committed(story, 1)
    story.publish(isr=(1,), elr=(2,), partition_epoch=1)
    with broken(CandidateCompleteness):
        story.cut(2, 0)
