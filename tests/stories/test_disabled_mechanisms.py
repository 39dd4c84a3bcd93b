"""A mechanism is gone only while a story is told without it."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.log.epochs import LeaderEpochs
from strandline.replica.followers import FollowerProgress
from strandline.replica.partition import Partition
from strandline.stories.disabled_mechanisms import LAG_MESSAGES_MAX, SWAPS, swapped
from strandline.stories.options import Option
from strandline.stories.registry import Story, UnknownOption, UnknownStory, play
from strandline.transactions.metadata import TransactionMetadata
from tests.stories.played_stories import STORIES

DECISIONS = (
    (LeaderEpochs, "end_offset_for"),
    (Partition, "follow"),
    (FollowerProgress, "is_caught_up"),
    (Partition, "readable_end"),
    (TransactionMetadata, "fenced"),
    (TransactionMetadata, "initialized"),
)


def test_all_decisions_are_put_back_also_after_a_failure() -> None:
    before = [getattr(owner, name) for owner, name in DECISIONS]
    with swapped(Option):
        assert all(getattr(owner, name) is not was for (owner, name), was in zip(DECISIONS, before, strict=True))
    assert [getattr(owner, name) for owner, name in DECISIONS] == before
    with pytest.raises(RuntimeError), swapped(Option):
        raise RuntimeError
    assert [getattr(owner, name) for owner, name in DECISIONS] == before


@pytest.mark.parametrize(
    ("story", "option"),
    [(story, option) for story in STORIES for option in story.options if option in SWAPS],
    ids=lambda value: value.name,
)
def test_a_story_as_it_is_does_not_come_out_without_the_mechanism(story: Story, option: Option) -> None:
    """So its point depends on the mechanism."""
    with swapped([option]), pytest.raises(AssertionError):
        play(story.name)


def test_without_epochs_only_offsets_are_compared() -> None:
    epochs = LeaderEpochs([(0, 0), (1, 3)])
    assert epochs.end_offset_for(0, 7) == (0, 3)
    with swapped([Option.WITHOUT_LEADER_EPOCHS]):
        assert epochs.end_offset_for(0, 7) == (0, 7)


def test_lag_by_messages_knows_no_time() -> None:
    follower = FollowerProgress(2, caught_up_at=0.0)
    follower.log_end_offset = 10
    assert follower.is_caught_up(10 + LAG_MESSAGES_MAX + 1, now=1.0, lag_time_max_s=10.0)
    with swapped([Option.LAG_BY_MESSAGES]):
        assert follower.is_caught_up(10 + LAG_MESSAGES_MAX, now=1e9, lag_time_max_s=10.0)
        assert not follower.is_caught_up(10 + LAG_MESSAGES_MAX + 1, now=1.0, lag_time_max_s=10.0)


def test_an_option_that_a_story_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(UnknownOption, match=r"'epoch-loss' does not know --unclean; it knows --without leader-epochs"):
        play("epoch-loss", [Option.UNCLEAN])
    with pytest.raises(UnknownOption, match=r"'commit' does not know --acks 1, nor any other option"):
        play("commit", [Option.ACKS_ONE])
    with pytest.raises(UnknownStory, match="nothing"):
        play("nothing")
