from __future__ import annotations

from strandline.histories.judges.quorum.epoch_begun_by_candidate import EpochBegunByCandidate

from .stage import Stage, broken, stage


def followers() -> Stage:
    story = stage(EpochBegunByCandidate)
    for node_id in (1, 2, 3):
        story.save(node_id, 1, leader_id=1)
    return story


def test_a_candidate_begins_an_epoch_and_the_others_hear_of_it() -> None:
    story = followers()
    story.save(2, 2, voted_id=2)
    story.save(3, 2)
    story.ask(3, 3)
    story.save(1, 3)


def test_a_pre_vote_begins_none() -> None:
    story = followers()
    story.ask(2, 2, pre_vote=True)
    with broken(EpochBegunByCandidate):
        story.save(2, 2)


def test_one_that_has_led_may_go_on() -> None:
    story = followers()
    story.save(1, 2)
