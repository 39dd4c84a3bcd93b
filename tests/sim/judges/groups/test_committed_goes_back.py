from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.judges.groups.committed_goes_back import CommittedGoesBack

from .stage import broken, stage


def test_what_was_acknowledged_is_seen() -> None:
    story = stage(CommittedGoesBack)
    story.fetch(-1)
    story.commit(5)
    story.fetch(5)
    story.commit(7)
    story.fetch(7)


def test_an_older_one_is_not() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.commit(7)
    with broken(CommittedGoesBack):
        story.fetch(5)


def test_nothing_after_something_is_not() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    with broken(CommittedGoesBack):
        story.fetch(-1)


def test_what_nobody_committed_is_not() -> None:
    story = stage(CommittedGoesBack)
    with broken(CommittedGoesBack):
        story.fetch(9)


def test_what_was_refused_is_not() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.commit(3, code=ErrorCode.ILLEGAL_GENERATION)
    with broken(CommittedGoesBack):
        story.fetch(3)


def test_a_commit_without_an_answer_may_take_effect_at_any_time() -> None:
    story = stage(CommittedGoesBack)
    story.ask_commit(3)
    story.commit(4, code=ErrorCode.REQUEST_TIMED_OUT)
    story.commit(5)
    story.fetch(5)
    story.fetch(3)
    story.fetch(4)


def test_who_asked_before_the_acknowledgement_may_see_either() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    question = story.ask_fetch()
    story.commit(7)
    story.answer_fetch(question, 5)


def test_the_next_coordinator_has_it() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.commit(7)
    story.coordinate(2, 2)
    story.fetch(7, node_id=2)
    with broken(CommittedGoesBack):
        story.fetch(5, node_id=2)


def test_a_deposed_one_may_not_know_what_came_after_it() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.coordinate(2, 2)
    story.commit(7, node_id=2)
    story.fetch(5, node_id=1)


def test_a_deleted_group_has_none() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.delete()
    story.fetch(-1)
    with broken(CommittedGoesBack):
        story.fetch(5)


def test_a_deletion_that_was_refused_deletes_nothing() -> None:
    story = stage(CommittedGoesBack)
    story.commit(5)
    story.delete(ErrorCode.NON_EMPTY_GROUP)
    with broken(CommittedGoesBack):
        story.fetch(-1)
