from __future__ import annotations

from strandline.histories.judges.quorum.committed_is_kept import CommittedIsKept

from .stage import broken, stage


def test_nobody_cuts_what_it_knows_to_be_committed() -> None:
    story = stage(CommittedIsKept)
    story.see(1, log_end_offset=10, high_watermark=8)
    story.see(1, log_end_offset=8)
    with broken(CommittedIsKept):
        story.see(1, log_end_offset=7)
