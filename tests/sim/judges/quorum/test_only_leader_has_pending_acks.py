from __future__ import annotations

from strandline.histories.judges.quorum.only_leader_has_pending_acks import WITHIN_S, OnlyLeaderHasPendingAcks

from .stage import broken, stage


def test_a_deposed_leader_soon_refuses_who_waits() -> None:
    story = stage(OnlyLeaderHasPendingAcks)
    story.lead(1, high_watermark=5, pending_end=9)
    story.see(1, "follower", leader_id=2, epoch=2)
    story.now = WITHIN_S
    story.see(1, "follower", pending_end=-1)
    story.lead(1, epoch=3, pending_end=12)
    story.see(1, "follower", leader_id=2, epoch=4)
    assert story.observed.finish()
    story.now = 3 * WITHIN_S
    with broken(OnlyLeaderHasPendingAcks):
        story.see(1, "follower", log_end_offset=3)


def test_what_is_committed_may_still_be_applied() -> None:
    story = stage(OnlyLeaderHasPendingAcks)
    story.see(1, "follower", high_watermark=9, pending_end=9)
    story.now = 2 * WITHIN_S
    story.see(1, "follower", log_end_offset=3)
    assert not story.observed.finish()
