# mypy: disable-error-code="arg-type"

from __future__ import annotations

from strandline.histories.judges.replication.leader_completeness import LeaderCompleteness
from strandline.histories.judges.replication.log_matching import LogMatching
from strandline.histories.replica_observation import Key, PermittedLoss, ReplicaObservation, ReplicaStatus

from .stage import KEY, Stage, broken, committed_by_all


class Both(LeaderCompleteness):
    """What is committed is found by the judge that compares logs."""

    def __init__(self) -> None:
        self._matching_judge = LogMatching()

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        super().changed(observed, node_id, key, before, after)
        self._matching_judge.changed(observed, node_id, key, before, after)


def elected(story: Stage, node_id: int, **changes: int) -> None:
    story.publish(leader=node_id, leader_epoch=1, partition_epoch=1, **changes)
    story.lead(node_id, 1)


def test_a_new_leader_has_all_that_is_committed() -> None:
    story = Stage(Both())
    committed_by_all(story, "a", "b")
    elected(story, 2)


def test_one_without_it_may_not_lead() -> None:
    story = Stage(Both())
    story.append(1, "a")
    story.commit(1, 1)
    with broken(Both):
        elected(story, 2)


def test_one_with_other_records_may_not_lead() -> None:
    story = Stage(Both())
    story.append(1, "a")
    story.append(2, "b")
    story.commit(1, 1)
    with broken(Both):
        elected(story, 2)


def test_an_unclean_election_takes_only_what_the_faults_may_take() -> None:
    story = Stage(Both())
    story.append(1, "a")
    story.commit(1, 1)
    with broken(Both):
        elected(story, 2, leader_recovery_state=1)


def test_what_an_unclean_election_may_take_is_gone() -> None:
    story = Stage(Both())
    lost = []
    story.observed.on_loss = lambda key, offset: lost.append(offset)
    story.observed.may_lose = PermittedLoss.ANYTHING
    story.append(1, "a")
    story.commit(1, 1)
    elected(story, 2, leader_recovery_state=1)
    assert lost == [0]
    assert story.observed.committed[KEY].end_offset == 0
