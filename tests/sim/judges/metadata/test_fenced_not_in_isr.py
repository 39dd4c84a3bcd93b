from __future__ import annotations

from strandline.histories.judges.metadata.fenced_not_in_isr import FencedNotInIsr

from ..quorum.stage import broken, image, stage


def test_a_fenced_broker_is_in_no_isr_but_alone_and_without_a_leader() -> None:
    story = stage(FencedNotInIsr)
    story.see(1, image=image(5, fenced=True, isr=(1,)))
    story.see(1, image=image(6, fenced=True, isr=(2,), leader=-1))
    with broken(FencedNotInIsr):
        story.see(1, image=image(7, fenced=True))
