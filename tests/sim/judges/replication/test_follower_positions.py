from __future__ import annotations

from types import SimpleNamespace

from strandline.histories.exchanges import AskedPosition
from strandline.histories.judges.replication.follower_positions import FollowerPositions
from strandline.wire.fetch import FetchedPartition

from .stage import KEY, Stage, broken, stage

PARTED = FetchedPartition(0, 0, 5, diverging_epoch=(1, 3))


def at(story: Stage, offset: int) -> None:
    """Broker 1 takes broker 2 to be there."""
    story.partition(1).leadership.followers = {2: SimpleNamespace(log_end_offset=offset)}


def leading() -> Stage:
    story = stage(FollowerPositions)
    at(story, -1)
    story.now = 2.0
    return story


def test_a_position_that_was_served_counts() -> None:
    story = leading()
    at(story, 4)
    story.fetch(2, 4, at=1.0)
    story.fetch(2, 4, at=1.5, answer=PARTED)


def test_one_where_the_logs_part_does_not() -> None:
    story = leading()
    story.fetch(2, 4, at=1.0, answer=PARTED)
    at(story, 4)
    with broken(FollowerPositions):
        story.fetch(2, 4, at=1.5, answer=PARTED)


def test_nor_one_of_another_epoch() -> None:
    story = leading()
    at(story, 4)
    with broken(FollowerPositions):
        story.fetch(2, 4, at=1.0, epoch=3, answer=FetchedPartition(0, 75))


def test_a_position_counts_though_its_fetch_was_never_answered() -> None:
    story = leading()
    at(story, 4)
    story._quorum.fetches.ever.add((1, 2, KEY, AskedPosition(0, 4)))
    story.fetch(2, 4, at=1.0, epoch=3, answer=FetchedPartition(0, 75))


def again(story: Stage, offset: int) -> None:
    """Broker 1 leads in epoch 2, and has not noticed that another one led in epoch 1."""
    story.publish(leader_epoch=2, partition_epoch=2)
    partition = story.partition(1)
    at(story, offset)
    partition.state, partition.leader_epoch = story.state, 2
    story.look(1)


def test_who_leads_again_knows_no_position() -> None:
    again(leading(), -1)
    with broken(FollowerPositions):
        again(leading(), 7)


def test_but_one_that_was_asked_for_in_the_new_epoch() -> None:
    story = leading()
    story._quorum.fetches.last[1, 2] = {(bytes(KEY[0]), 0): AskedPosition(2, 7)}
    again(story, 7)
