from __future__ import annotations

from strandline.histories.judges.replication.flushed_survives import ReplicaFlushedSurvives

from .stage import Stage, broken, stage


def begun() -> Stage:
    story = stage(ReplicaFlushedSurvives)
    story.append(2, "a")
    story.append(2, "b")
    story.partition(2).log.recovery_point = 1
    return story


def test_a_kill_takes_nothing() -> None:
    story = begun()
    story.restart(2)
    story.append(2, "c")
    log = story.partition(2).log
    log.truncate(2)
    with broken(ReplicaFlushedSurvives):
        story.restart(2, end=1)


def test_a_power_loss_takes_what_was_not_flushed() -> None:
    begun().restart(2, power_lost=True, end=1)


def test_a_power_loss_takes_nothing_that_was_flushed() -> None:
    story = begun()
    with broken(ReplicaFlushedSurvives):
        story.restart(2, power_lost=True, end=0)


def test_what_rotted_may_be_cut_and_a_new_disk_is_empty() -> None:
    story = begun()
    story.sight.note_rot(2, "t-0")
    story.restart(2, power_lost=True, end=0)
    story = begun()
    story._quorum.forget(2)
    story.restart(2, power_lost=True, end=0)


def test_a_replica_that_was_moved_away_meanwhile_begins_anew() -> None:
    story = begun()
    story.publish(replicas=(1, 3), isr=(1, 3), partition_epoch=1)
    story.look(1)
    story.publish(replicas=(1, 3, 2), partition_epoch=2)
    story.look(1)
    story.restart(2, power_lost=True, end=0)
