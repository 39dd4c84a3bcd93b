from __future__ import annotations

import pytest

from strandline.histories.judges.replication.below_log_start import BelowLogStart
from strandline.wire.fetch import FetchedPartition

from .stage import Stage, broken, stage

OUT_OF_RANGE = FetchedPartition(0, 1)


def started_at_2() -> Stage:
    story = stage(BelowLogStart)
    story.now = 1.0
    story.append(1, "a", "b", "c")
    story.partition(1).log.log_start_offset = 2
    story.commit(1, 3)
    story.now = 2.0
    return story


def test_what_is_there_is_served() -> None:
    started_at_2().fetch(2, 2, at=1.5, answer=FetchedPartition(0, 0, 3, records=b"r"))


@pytest.mark.parametrize(
    "answer", [FetchedPartition(0, 0, 3, records=b"r"), FetchedPartition(0, 0, 3, diverging_epoch=(0, 1))]
)
@pytest.mark.parametrize("who", [2, -1])
def test_what_is_not_there_any_more_is_out_of_range(who: int, answer: FetchedPartition) -> None:
    story = started_at_2()
    story.fetch(who, 1, at=1.5, answer=OUT_OF_RANGE)
    with broken(BelowLogStart):
        story.fetch(who, 1, at=1.5, answer=answer)


def test_an_answer_may_be_older_than_the_log_start() -> None:
    started_at_2().fetch(2, 1, at=0.5, answer=FetchedPartition(0, 0, 3, records=b"r"))
