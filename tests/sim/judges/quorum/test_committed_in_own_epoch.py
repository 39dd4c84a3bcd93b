from __future__ import annotations

from strandline.histories.batches import LoggedBatch
from strandline.histories.judges.quorum.committed_in_own_epoch import CommittedInOwnEpoch

from .stage import broken, stage


def test_a_leader_commits_with_a_record_of_its_own_epoch() -> None:
    story = stage(CommittedInOwnEpoch)
    story.shelves[1].log = [LoggedBatch(0, 2, 1, 11), LoggedBatch(3, 3, 2, 12)]
    story.lead(1, epoch=2, log_end_offset=4, high_watermark=4)
    with broken(CommittedInOwnEpoch):
        story.lead(1, epoch=2, high_watermark=3)


def test_a_leader_does_not_keep_the_watermark_that_it_had_as_a_follower() -> None:
    story = stage(CommittedInOwnEpoch)
    story.shelves[1].log = [LoggedBatch(0, 2, 1, 11)]
    story.see(1, epoch=1, log_end_offset=3, high_watermark=3)
    with broken(CommittedInOwnEpoch):
        story.lead(1, epoch=2)
