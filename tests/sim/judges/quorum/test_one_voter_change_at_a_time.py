from __future__ import annotations

from strandline.histories.judges.quorum.one_voter_change_at_a_time import OneVoterChangeAtATime

from .stage import broken, stage, voters


def test_a_leader_changes_one_voter_and_commits_that_before_the_next() -> None:
    story = stage(OneVoterChangeAtATime)
    story.lead(1, log_end_offset=5, high_watermark=5)
    story.lead(1, log_end_offset=6, voters=voters(1, 2, 3, 4))
    story.lead(1, high_watermark=6)
    story.lead(1, log_end_offset=7, voters=voters(1, 2, 3))
    with broken(OneVoterChangeAtATime):
        story.lead(1, log_end_offset=8, voters=voters(1, 2))


def test_a_leader_does_not_change_two_voters_at_once() -> None:
    story = stage(OneVoterChangeAtATime)
    story.lead(1)
    with broken(OneVoterChangeAtATime):
        story.lead(1, log_end_offset=1, voters=voters(1, 2, 4))


def test_in_the_end_all_know_the_same_voters() -> None:
    story = stage(OneVoterChangeAtATime)
    story.lead(1)
    story.see(2, leader_id=1)
    assert not story.observed.finish()
    story.see(2, voters=voters(1, 2))
    assert story.observed.finish()
