from __future__ import annotations

from strandline.histories.judges.quorum.monotonic_high_watermark import MonotonicHighWatermark

from .stage import broken, stage


def test_the_high_watermark_of_a_process_never_moves_back() -> None:
    story = stage(MonotonicHighWatermark)
    story.see(2, high_watermark=5)
    story.see(2, high_watermark=None)
    story.see(2, high_watermark=5)
    story.see(2, life=2, high_watermark=0)
    story.see(2, high_watermark=4)
    with broken(MonotonicHighWatermark):
        story.see(2, high_watermark=3)


def test_the_next_leader_commits_at_least_as_much_but_a_deposed_one_may_lag() -> None:
    story = stage(MonotonicHighWatermark)
    story.lead(1, epoch=1, high_watermark=5)
    story.lead(2, epoch=2, high_watermark=9)
    story.lead(1, high_watermark=7)
    with broken(MonotonicHighWatermark):
        story.lead(3, epoch=3, high_watermark=8)
