from __future__ import annotations

from strandline.histories.judges.quorum.flushed_is_on_device import FlushedIsOnDevice

from .stage import broken, stage


def test_what_is_said_to_be_flushed_is_on_the_device() -> None:
    story = stage(FlushedIsOnDevice)
    story.shelves[2].durable = 7
    story.see(2, log_end_offset=10, flushed_offset=7)
    with broken(FlushedIsOnDevice):
        story.see(2, flushed_offset=8)
