from __future__ import annotations

from strandline.histories.judges.quorum.elected_by_majority import ElectedByMajority

from .stage import broken, stage, voters


def test_a_leader_has_the_votes_of_a_majority() -> None:
    story = stage(ElectedByMajority)
    story.ask(1, 5)
    story.vote(2, 1, 5)
    story.lead(1, epoch=5)
    story.lead(1, epoch=5, high_watermark=3)
    story.ask(3, 6)
    with broken(ElectedByMajority):
        story.lead(3, epoch=6)


def test_pre_votes_elect_nobody() -> None:
    story = stage(ElectedByMajority)
    story.ask(1, 5, pre_vote=True)
    story.vote(2, 1, 5, pre_vote=True)
    with broken(ElectedByMajority):
        story.lead(1, epoch=5)


def test_nobody_votes_for_who_did_not_ask() -> None:
    story = stage(ElectedByMajority)
    with broken(ElectedByMajority):
        story.vote(2, 1, 5)


def test_the_only_voter_elects_itself() -> None:
    stage(ElectedByMajority).lead(1, epoch=5, voters=voters(1))
