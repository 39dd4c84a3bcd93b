from __future__ import annotations

from strandline.histories.judges.replication.high_watermark import ReplicaHighWatermark

from .stage import broken, committed_by_all, stage


def test_a_watermark_lies_within_the_log() -> None:
    story = stage(ReplicaHighWatermark)
    story.append(1, "a")
    story.commit(1, 1)
    with broken(ReplicaHighWatermark):
        story.commit(1, 2)


def test_a_leaders_watermark_does_not_move_back() -> None:
    story = stage(ReplicaHighWatermark)
    committed_by_all(story, "a")
    with broken(ReplicaHighWatermark):
        story.commit(1, 0)


def test_a_follower_does_not_cut_what_it_knows_to_be_committed() -> None:
    story = stage(ReplicaHighWatermark)
    committed_by_all(story, "a")
    story.append(2, "b")
    story.cut(2, 1)
    with broken(ReplicaHighWatermark):
        story.cut(2, 0)


def test_after_a_restart_the_watermark_may_lag() -> None:
    story = stage(ReplicaHighWatermark)
    committed_by_all(story, "a")
    story.restart(2)
    assert story.partition(2).high_watermark == 0
