from __future__ import annotations

from strandline.histories.judges.quorum.pre_vote_without_leader import PreVoteWithoutLeader

from .stage import Stage, broken, stage


def following(*, since_s: float) -> Stage:
    """Node 2 follows node 3 and has fetched so long ago; the fetch timeout is one second, and no fault was injected for
    long."""
    story = stage(PreVoteWithoutLeader)
    story.now = 10.0
    story.lead(3, epoch=4)
    story.see(2, leader_id=3, epoch=4)
    for _ in range(3):
        story.now += 0.05
        story.fetch(2, 4)
    story.now += since_s
    return story


def test_who_hears_its_leader_grants_nothing() -> None:
    with broken(PreVoteWithoutLeader):
        following(since_s=0.1).vote(2, 1, 4, pre_vote=True)


def test_who_has_not_heard_it_for_a_while_may() -> None:
    following(since_s=0.5).vote(2, 1, 4, pre_vote=True)


def test_who_knows_no_leader_or_another_one_since_may() -> None:
    story = following(since_s=0.1)
    story.see(2, "unattached", leader_id=-1, epoch=5)
    story.vote(2, 1, 5, pre_vote=True)
    story.see(2, leader_id=1, epoch=5)
    story.vote(2, 3, 5, pre_vote=True)


def test_a_link_may_have_broken_or_be_cut() -> None:
    story = following(since_s=0.1)
    story.observed.disturbed_at = story.now - 1.0
    story.vote(2, 1, 4, pre_vote=True)
    story = following(since_s=0.1)
    story.observed.is_cut = lambda one, other: (one, other) == (2, 3)
    story.vote(2, 1, 4, pre_vote=True)


def test_a_leader_that_stands_still_is_not_heard() -> None:
    story = following(since_s=0.1)
    story.shelves[3].is_running = False
    story.vote(2, 1, 4, pre_vote=True)
