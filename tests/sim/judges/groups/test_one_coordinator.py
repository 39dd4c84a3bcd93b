from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.judges.groups.one_coordinator import OneCoordinator

from .stage import broken, stage


def test_one_after_the_other() -> None:
    story = stage(OneCoordinator)
    story.commit(1)
    story.coordinate(2, 2)
    story.commit(2, node_id=2)
    story.commit(3, node_id=1)  # deposed, and does not know it: of an epoch of its own


def test_two_in_one_epoch() -> None:
    story = stage(OneCoordinator)
    story.commit(1)
    story.coordinate(2, 1)
    with broken(OneCoordinator):
        story.commit(2, node_id=2)


def test_who_never_was_one_may_only_refuse() -> None:
    story = stage(OneCoordinator)
    story.commit(1, node_id=3, code=ErrorCode.NOT_COORDINATOR)
    with broken(OneCoordinator):
        story.commit(1, node_id=3)
