from __future__ import annotations

from strandline.histories.judges.quorum.monotonic_epoch import MonotonicEpoch

from .stage import broken, stage


def test_epochs_do_not_move_back_across_a_restart() -> None:
    story = stage(MonotonicEpoch)
    story.save(1, 4)
    story.see(1, epoch=4)
    with broken(MonotonicEpoch):
        story.see(1, life=2, epoch=3)
    with broken(MonotonicEpoch):
        story.save(1, 3)


def test_nobody_leads_in_an_epoch_that_is_not_on_its_disk() -> None:
    story = stage(MonotonicEpoch)
    story.save(1, 4)
    with broken(MonotonicEpoch):
        story.lead(1, epoch=5)
