from __future__ import annotations

from strandline.histories.judges.replication.enough_in_sync import EnoughInSync

from .stage import broken, stage


def test_a_leader_commits_with_enough_in_sync() -> None:
    story = stage(EnoughInSync)
    story.publish(isr=(1, 2), partition_epoch=1)
    story.lead(1, 0)
    story.append(1, "a")
    story.commit(1, 1)


def test_a_leader_does_not_commit_with_fewer() -> None:
    story = stage(EnoughInSync)
    story.publish(isr=(1,), partition_epoch=1)
    story.lead(1, 0)
    story.append(1, "a")
    with broken(EnoughInSync):
        story.commit(1, 1)


def test_more_than_there_are_replicas_can_not_be_asked_for() -> None:
    story = stage(EnoughInSync, min_isr=5)
    story.append(1, "a")
    story.commit(1, 1)
