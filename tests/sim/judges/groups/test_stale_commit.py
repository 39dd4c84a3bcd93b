from __future__ import annotations

import contextlib

import pytest

from strandline.errors import ErrorCode
from strandline.histories.judges.groups.stale_commit import StaleCommit
from strandline.ids import ZERO_UUID, Uuid

from .stage import GroupStage, broken, stage


def test_the_owner_commits() -> None:
    story = stage(StaleCommit)
    story.sync("a", 1, 0)
    story.commit(5, who="a", generation=1)
    story.sync("b", 2, 0)
    story.commit(7, who="b", generation=2)


def test_the_former_owner_is_refused() -> None:
    story = stage(StaleCommit)
    story.sync("a", 1, 0)
    story.sync("b", 2, 0)
    story.commit(5, who="a", generation=1, code=ErrorCode.ILLEGAL_GENERATION)
    with broken(StaleCommit):
        story.commit(5, who="a", generation=1)


def test_what_it_sent_before_may_be_taken() -> None:
    story = stage(StaleCommit)
    story.sync("a", 1, 0)
    sent = story.ask_commit(5, who="a", generation=1)
    story.sync("b", 2, 0)
    story.answer_commit(sent)


def test_a_former_owner_by_the_consumer_protocol() -> None:
    story = stage(StaleCommit)
    story.heartbeat("a", 1, [0])
    story.heartbeat("b", 2, [0])
    with broken(StaleCommit):
        story.commit(5, who="a", generation=1)


def test_a_static_member_is_the_same_in_its_next_life() -> None:
    story = stage(StaleCommit)
    story.heartbeat("a-1", 2, [0], instance="a")
    story.heartbeat("a-2", 3, [0], instance="a")
    story.commit(5, who="a-1", generation=2)


def test_nor_is_one_from_before_a_partition_went_and_came_back() -> None:
    story = stage(StaleCommit)
    story.heartbeat("a", 1, [0])
    story.heartbeat("b", 2, [0])
    story.heartbeat("a", 3, [0])
    story.commit(5, who="a", generation=3)
    with broken(StaleCommit):
        story.commit(5, who="a", generation=1)


@pytest.mark.parametrize("had", ["another partition", "the deleted topic"])
def test_a_commit_for_a_topic_that_was_created_again_may_be_taken(had: str) -> None:
    judge = StaleCommit()
    story = GroupStage(judge)
    story.heartbeat("a", 1, [1])
    story.heartbeat("b", 2, [0])
    if had == "the deleted topic":
        judge._names["a"] = {story.observed.name((ZERO_UUID, 0)): (Uuid(bytes(15) + b"1"), 0)}
    with broken(StaleCommit) if had == "another partition" else contextlib.nullcontext():
        story.commit(5, who="a", generation=1)
