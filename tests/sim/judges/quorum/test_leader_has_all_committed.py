from __future__ import annotations

from strandline.histories.judges.quorum.leader_has_all_committed import LeaderHasAllCommitted

from .stage import broken, stage


def test_a_new_leader_has_all_that_was_committed() -> None:
    story = stage(LeaderHasAllCommitted)
    story.lead(1, epoch=1, log_end_offset=9, high_watermark=8)
    story.lead(2, epoch=2, log_end_offset=8)
    with broken(LeaderHasAllCommitted):
        story.lead(3, epoch=3, log_end_offset=7)
