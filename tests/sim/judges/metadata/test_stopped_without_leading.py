from __future__ import annotations

from dataclasses import replace

from strandline.histories.judges.metadata.stopped_without_leading import StoppedWithoutLeading
from strandline.histories.wire import BROKER_HEARTBEAT, QuorumMessage
from strandline.metadata.image import MetadataImage

from ..quorum.stage import Stage, broken, image, stage


def stopping(end_offset: int, leader: int) -> MetadataImage:
    """Broker 2 was asked to hand over."""
    known = image(end_offset, leader=leader, leader_epoch=1)
    return replace(known, brokers={**known.brokers, 2: replace(known.brokers[2], in_controlled_shutdown=True)})


def stop(story: Stage) -> None:
    story.observed.see_sent(QuorumMessage(3, BROKER_HEARTBEAT, -1, response=True, candidate_id=2, granted=True))


def test_one_that_leads_nothing_may_stop() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(1, image=stopping(6, leader=1))
    story.see(3, image=stopping(6, leader=1))
    stop(story)


def test_one_that_leads_may_not() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(3, image=stopping(6, leader=2))
    story.observed.see_sent(QuorumMessage(3, BROKER_HEARTBEAT, -1, response=True, candidate_id=2))
    with broken(StoppedWithoutLeading):
        stop(story)


def test_nor_may_one_of_which_another_broker_still_believes_it() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(1, image=stopping(5, leader=2))
    story.see(3, image=stopping(6, leader=1))
    with broken(StoppedWithoutLeading):
        stop(story)


def test_one_that_has_just_restarted_knew_it() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(1, image=stopping(6, leader=1))
    story.see(1, life=2, image=stopping(5, leader=2))
    story.see(3, image=stopping(6, leader=1))
    stop(story)


def test_one_that_leads_is_not_let_go_in_the_step_that_takes_it_away() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(3, image=image(5, leader=2))
    asked = QuorumMessage(2, BROKER_HEARTBEAT, -1, candidate_id=2, broker_epoch=0, wants_to_stop=True)
    story.observed.see_sent(asked)
    story.now = 0.1
    story.see(3, image=image(6, fenced=True, isr=(1,), leader=1, leader_epoch=1))
    with broken(StoppedWithoutLeading):
        story.observed.see_sent(asked._replace(source=3, response=True, granted=True))


def test_one_whose_session_was_over_before_it_asked_may_go() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(3, image=image(5, leader=2))
    story.see(3, image=image(6, fenced=True, isr=(1,), leader=1, leader_epoch=1))
    story.now = 0.1
    asked = QuorumMessage(2, BROKER_HEARTBEAT, -1, candidate_id=2, broker_epoch=0, wants_to_stop=True)
    story.observed.see_sent(asked)
    story.observed.see_sent(asked._replace(source=3, response=True, granted=True))


def test_one_whose_only_topic_was_deleted_in_the_same_turn_may_go() -> None:
    story = stage(StoppedWithoutLeading)
    story.see(3, image=image(5, leader=2))
    asked = QuorumMessage(2, BROKER_HEARTBEAT, -1, candidate_id=2, broker_epoch=0, wants_to_stop=True)
    story.observed.see_sent(asked)
    story.now = 0.1
    story.see(3, image=replace(image(7, fenced=True), topics={}, topics_by_id={}))
    story.observed.see_sent(asked._replace(source=3, response=True, granted=True))
