from __future__ import annotations

from strandline.histories.judges.quorum.check_quorum import CheckQuorum

from .stage import Stage, broken, stage


def lives(story: Stage, seconds: int, *fetching: int, epoch: int = 1) -> None:
    """The fetch timeout is one second."""
    for _ in range(2 * seconds):
        story.now += 0.5
        for voter in fetching:
            story.fetch(voter, epoch)


def test_one_of_two_others_is_a_majority() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    lives(story, 20, 2)


def test_a_leader_from_whom_only_an_observer_fetches_leads_no_more() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    lives(story, 2, 9)
    with broken(CheckQuorum):
        lives(story, 4, 9)


def test_what_is_fetched_in_another_epoch_does_not_count() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    with broken(CheckQuorum):
        lives(story, 8, 2, 3, epoch=2)


def test_one_that_has_resigned_is_well() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    lives(story, 2, 9)
    story.see(1, "resigned")
    lives(story, 8, 9)


def test_one_that_is_held_can_not_know() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    story.shelves[1].is_running = False
    lives(story, 20, 9)
    story.shelves[1].is_running = True
    lives(story, 1, 9)


def test_one_that_lost_its_disk_leads_nothing() -> None:
    story = stage(CheckQuorum)
    story.lead(1)
    story.observed.forget(1)
    lives(story, 20, 9)
