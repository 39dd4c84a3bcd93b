from __future__ import annotations

import contextlib

import pytest

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
    story.observed.note_rot(2, "t-0")
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


@pytest.mark.parametrize("in_sync", [False, True])
def test_a_follower_that_begins_anew_may_have_to_again(*, in_sync: bool) -> None:
    """It has nothing between the leader's log start, where it begins, and what it claims to have on its device."""
    story = begun()
    story.publish(isr=(1, 2, 3) if in_sync else (1, 3), partition_epoch=1)
    story.look(1)
    story.partition(2).log.log_start_offset = 1
    with broken(ReplicaFlushedSurvives) if in_sync else contextlib.nullcontext():
        story.restart(2, power_lost=True, end=0)


def test_a_leader_with_an_empty_log_may_not_forget_where_it_ended() -> None:
    """It would give the same offsets again. That it was fenced meanwhile, and left the ISR, is no excuse."""
    story = stage(ReplicaFlushedSurvives)
    story.append(1, "a")
    log = story.partition(1).log
    log.recovery_point = log.log_start_offset = 1
    story.publish(isr=(2, 3), leader=2, leader_epoch=1, partition_epoch=1)
    story.look(2)
    with broken(ReplicaFlushedSurvives):
        story.restart(1, power_lost=True, end=0)
