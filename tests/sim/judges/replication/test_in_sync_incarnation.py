from __future__ import annotations

from strandline.histories.judges.replication.in_sync_incarnation import InSyncIncarnation

from .stage import Stage, broken, stage


def wished(**epochs: int) -> Stage:
    """Broker 3 is not in sync, and the leader wishes that it were."""
    story = stage(InSyncIncarnation)
    story.publish(isr=(1, 2), partition_epoch=1)
    story.lead(1, 0)
    story.propose(1, n1=1, n2=2, **epochs)
    return story


def test_the_incarnation_that_fetched_joins() -> None:
    story = wished(n3=3)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    story.look(1)


def test_one_that_restarted_since_does_not() -> None:
    story = wished(n3=3)
    story.publish(brokers={3: 8})
    story.look(1)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    with broken(InSyncIncarnation):
        story.look(1)


def test_nobody_joins_without_having_fetched() -> None:
    story = wished(n3=-1)
    story.publish(isr=(1, 2, 3), partition_epoch=2)
    with broken(InSyncIncarnation):
        story.look(1)


def test_what_the_controller_refused_is_no_harm() -> None:
    story = wished(n3=3)
    story.publish(brokers={3: 8}, isr=(1, 2), partition_epoch=2)
    story.look(1)
