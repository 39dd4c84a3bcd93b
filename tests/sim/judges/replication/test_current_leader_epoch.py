from __future__ import annotations

import pytest

from strandline.histories.judges.replication.current_leader_epoch import CurrentLeaderEpoch
from strandline.wire.fetch import FetchedPartition

from .stage import Stage, broken, stage

RECORDS = FetchedPartition(0, 0, 5, records=b"r")


def led_in_epoch_3() -> Stage:
    """Broker 1 leads in epoch 3 since the first second."""
    story = stage(CurrentLeaderEpoch)
    story.now = 1.0
    story.publish(leader_epoch=3, partition_epoch=1)
    story.lead(1, 3)
    story.now = 2.0
    return story


def test_the_same_epoch_is_served_and_one_that_is_not_told_too() -> None:
    story = led_in_epoch_3()
    story.fetch(2, 0, at=1.5, epoch=3, answer=RECORDS)
    story.fetch(-1, 0, at=1.5, epoch=-1, answer=RECORDS)


@pytest.mark.parametrize("epoch", [2, 4])
def test_another_one_is_refused(epoch: int) -> None:
    story = led_in_epoch_3()
    story.fetch(2, 0, at=1.5, epoch=epoch, answer=FetchedPartition(0, 74))
    story.fetch(2, 0, at=1.5, epoch=epoch)
    with broken(CurrentLeaderEpoch):
        story.fetch(2, 0, at=1.5, epoch=epoch, answer=RECORDS)


@pytest.mark.parametrize("epoch", [2, 4])
def test_a_consumer_gets_no_records_and_a_follower_not_even_a_watermark(epoch: int) -> None:
    story = led_in_epoch_3()
    empty = FetchedPartition(0, 0, 5)
    story.fetch(-1, 0, at=1.5, epoch=epoch, answer=empty)
    with broken(CurrentLeaderEpoch):
        story.fetch(-1, 0, at=1.5, epoch=epoch, answer=RECORDS)
    with broken(CurrentLeaderEpoch):
        story.fetch(2, 0, at=1.5, epoch=epoch, answer=empty)


def test_an_answer_may_be_older_than_the_epoch() -> None:
    story = led_in_epoch_3()
    story.fetch(2, 0, at=0.5, epoch=0, answer=RECORDS)
