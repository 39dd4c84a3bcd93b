from __future__ import annotations

from strandline.histories.judges.quorum.no_vote_beside_leader import NoVoteBesideLeader

from .stage import broken, stage


def test_who_knows_no_leader_votes() -> None:
    story = stage(NoVoteBesideLeader)
    story.save(2, 5)
    story.vote(2, 1, 5)
    story.save(2, 6, leader_id=3)
    story.vote(2, 1, 7)
    story.vote(2, 1, 6, pre_vote=True)


def test_who_knows_the_leader_votes_for_nobody_else() -> None:
    story = stage(NoVoteBesideLeader)
    story.save(2, 5, leader_id=3)
    story.vote(2, 3, 5)
    with broken(NoVoteBesideLeader):
        story.vote(2, 1, 5)
