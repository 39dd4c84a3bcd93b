from __future__ import annotations

from strandline.histories.judges.replication.joins_caught_up import JoinsCaughtUp

from .stage import Stage, broken, stage


def two_in_sync(end_of_3: int) -> Stage:
    """Broker 1 leads since its log ended at 2; broker 3 is not in sync and has so much."""
    story = stage(JoinsCaughtUp)
    for node_id, count in ((1, 2), (2, 2), (3, end_of_3)):
        for number in range(count):
            story.append(node_id, str(number))
    story.publish(isr=(1, 2), partition_epoch=1)
    story.lead(1, 0)
    story.partition(1).leadership.start_offset = 2
    return story


def test_who_has_all_from_before_the_epoch_may_join() -> None:
    two_in_sync(2).propose(1, n1=1, n2=2, n3=3)


def test_who_lacks_some_of_it_may_not() -> None:
    with broken(JoinsCaughtUp):
        two_in_sync(1).propose(1, n1=1, n2=2, n3=3)


def test_an_earlier_incarnation_had_it_perhaps() -> None:
    two_in_sync(1).propose(1, n1=1, n2=2, n3=0)
