from __future__ import annotations

from strandline.histories.judges.replication.committed_is_somewhere import CommittedIsSomewhere
from strandline.histories.replica_observation import PermittedLoss

from .stage import KEY, Stage, broken, committed_by_all, stage


def begun() -> Stage:
    story = stage(CommittedIsSomewhere)
    committed_by_all(story, "a")
    story.observed.committed[KEY].end_offset = 1
    return story


def test_one_that_has_it_is_enough() -> None:
    story = begun()
    story.cut(1, 0)
    story.restart(2, power_lost=True, end=0)
    with broken(CommittedIsSomewhere):
        story.restart(3, power_lost=True, end=0)


def test_where_the_faults_may_take_it_nobody_need_have_it() -> None:
    story = begun()
    story.observed.may_lose = PermittedLoss.UNSYNCED
    for node_id in (1, 2, 3):
        story.restart(node_id, power_lost=True, end=0)
