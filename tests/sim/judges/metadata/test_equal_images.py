from __future__ import annotations

from strandline.histories.judges.metadata.equal_images import EqualImages

from ..quorum.stage import broken, image, stage


def test_two_nodes_that_applied_the_same_have_the_same_image() -> None:
    story = stage(EqualImages)
    story.see(1, high_watermark=5, image=image(5))
    story.see(2, high_watermark=5, image=image(5))
    with broken(EqualImages):
        story.see(3, high_watermark=5, image=image(5, isr=(1,)))


def test_nobody_applies_what_is_not_committed() -> None:
    story = stage(EqualImages)
    story.see(1, high_watermark=5)
    with broken(EqualImages):
        story.see(2, high_watermark=4, image=image(6))


def test_an_image_does_not_move_back() -> None:
    story = stage(EqualImages)
    story.see(1, high_watermark=9, image=image(8))
    with broken(EqualImages):
        story.see(1, image=image(7))
