from __future__ import annotations

from strandline.histories.judges.quorum.stable_leadership import StableLeadership

from .stage import broken, stage


def test_where_the_leader_keeps_its_majority_nobody_else_leads() -> None:
    story = stage(StableLeadership)
    story.lead(3, epoch=0)
    story.lead(2, epoch=0)
    assert isinstance(story.judge, StableLeadership)
    story.judge.begin()
    story.lead(1, epoch=1)
    story.see(1, "leader", high_watermark=3)
    with broken(StableLeadership):
        story.lead(2, epoch=2)
