"""EpochBegins and EpochsMatchLog: what a replica knows of leader epochs."""

from __future__ import annotations

from typing import Any

from strandline.histories.judges.replication.epoch_begins import EpochBegins
from strandline.histories.judges.replication.epochs_match_log import EpochsMatchLog
from strandline.histories.replica_observation import ReplicaJudge
from strandline.log.epochs import LeaderEpochs

from .stage import FakePartition, Stage, broken, stage


def leads_in_epoch_3(judge: type[ReplicaJudge], *entries: tuple[int, int]) -> Stage:
    """Broker 2, whose log knows these epochs and has two batches, of epochs 0 and 1."""
    story = stage(judge)
    log: Any = story.partition(2).log
    log.append("a", "b", epoch=0)
    log.append("c", "d", epoch=1)
    log.epochs = LeaderEpochs(list(entries))
    story.publish(leader=2, leader_epoch=3, partition_epoch=1)
    story.lead(2, 3)
    return story


def test_an_epoch_begins_with_its_leader() -> None:
    leads_in_epoch_3(EpochBegins, (0, 0), (1, 2), (3, 4))
    with broken(EpochBegins):
        leads_in_epoch_3(EpochBegins, (0, 0), (1, 2))


def test_what_is_known_of_epochs_is_what_the_batches_say() -> None:
    leads_in_epoch_3(EpochsMatchLog, (0, 0), (1, 2), (3, 4))


def test_an_epoch_that_was_forgotten_is_seen() -> None:
    with broken(EpochsMatchLog):
        leads_in_epoch_3(EpochsMatchLog, (1, 2), (3, 4))


def test_so_is_one_that_ends_elsewhere() -> None:
    with broken(EpochsMatchLog):
        leads_in_epoch_3(EpochsMatchLog, (0, 0), (1, 3), (3, 4))


def test_a_log_that_is_opened_is_looked_at_too() -> None:
    story = leads_in_epoch_3(EpochsMatchLog, (0, 0), (1, 2), (3, 4))
    before = story.partition(2)
    log: Any = before.log.reopened()
    log.epochs = LeaderEpochs([(3, 4)])
    with broken(EpochsMatchLog):
        story.members[2].start(FakePartition(before.state, log))
        story.look(2)
