"""What the observation of replicas itself keeps: the coverage, and how little a look costs when nothing changed."""

# mypy: disable-error-code="unused-ignore"

from __future__ import annotations

from strandline.histories.coverage import REPLICA
from strandline.histories.replica_observation import ReplicaJudge

from .stage import committed_by_all, stage


def test_what_happens_to_replicas_is_counted() -> None:
    story = stage(ReplicaJudge)
    story.append(1, "a")
    story.publish(isr=(1, 2), partition_epoch=1)
    story.look(1)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    story.look(1)
    story.publish(leader=2, leader_epoch=1, partition_epoch=3)
    story.lead(2, 1)
    story.follow(1, 2, 1)
    story.cut(1, 0)
    story.publish(leader=3, leader_epoch=2, partition_epoch=4, isr=(3,), leader_recovery_state=1)
    story.look(1)
    story.publish(replicas=(3, 2), partition_epoch=5)
    story.look(1)
    assert dict(story.observed.coverage) == {
        (REPLICA, "isr shrink"): 2,
        (REPLICA, "isr expand"): 1,
        (REPLICA, "election"): 1,
        (REPLICA, "unclean election"): 1,
        (REPLICA, "became follower"): 1,
        (REPLICA, "truncation"): 1,
        (REPLICA, "reassignment"): 1,
    }


def test_a_replica_at_which_nothing_changed_is_passed_over() -> None:
    seen = []

    class Watching(ReplicaJudge):
        def changed(self, *what: object) -> None:  # type: ignore[override]
            seen.append(what)

    story = stage(Watching)
    committed_by_all(story, "a")
    seen.clear()
    story.look(1)
    assert not seen
    story.append(1, "b")
    assert len(seen) == 1
