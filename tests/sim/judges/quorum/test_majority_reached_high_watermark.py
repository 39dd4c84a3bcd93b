from __future__ import annotations

from strandline.histories.judges.quorum.majority_reached_high_watermark import MajorityReachedHighWatermark

from .stage import broken, stage


def test_a_majority_has_on_its_devices_what_is_committed() -> None:
    story = stage(MajorityReachedHighWatermark)
    story.see(2, log_end_offset=10, flushed_offset=7)
    story.lead(1, log_end_offset=10, flushed_offset=9, high_watermark=7)
    with broken(MajorityReachedHighWatermark):
        story.lead(1, high_watermark=8)


def test_what_was_cut_is_not_on_a_device_any_more() -> None:
    story = stage(MajorityReachedHighWatermark)
    story.see(2, log_end_offset=10, flushed_offset=10)
    story.see(2, log_end_offset=6, flushed_offset=6)
    with broken(MajorityReachedHighWatermark):
        story.lead(1, log_end_offset=10, flushed_offset=10, high_watermark=7)


def test_what_a_voter_had_promised_before_it_lost_its_disk_counts_on() -> None:
    story = stage(MajorityReachedHighWatermark)
    story.see(2, log_end_offset=10, flushed_offset=10)
    story.observed.forget(2)
    story.lead(1, log_end_offset=12, flushed_offset=12, high_watermark=10)
    with broken(MajorityReachedHighWatermark):
        story.lead(1, high_watermark=11)
