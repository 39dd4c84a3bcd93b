from __future__ import annotations

from dataclasses import replace

from strandline.histories.judges.metadata.unfenced_has_caught_up import UnfencedHasCaughtUp
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage

from ..quorum.stage import Stage, broken, image, stage


def registered(end_offset: int, *, fenced: bool, incarnation: bytes = b"new") -> MetadataImage:
    """Broker 2 registers at offset 6."""
    known = image(end_offset)
    two = replace(known.brokers[2], epoch=6, fenced=fenced, incarnation_id=Uuid(incarnation.ljust(16)))
    return replace(known, brokers={**known.brokers, 2: two})


def running() -> Stage:
    """Both brokers are unfenced."""
    story = stage(UnfencedHasCaughtUp)
    for known in (MetadataImage(1), image(5)):
        for node_id in (1, 2):
            story.see(node_id, image=known)
    return story


def test_one_that_has_applied_its_registration_is_unfenced() -> None:
    story = running()
    story.see(1, image=registered(7, fenced=True))
    story.see(2, image=registered(7, fenced=True))
    story.see(1, image=registered(8, fenced=False))


def test_one_that_has_not_is_fenced() -> None:
    story = running()
    story.see(1, image=registered(7, fenced=True))
    with broken(UnfencedHasCaughtUp):
        story.see(1, image=registered(8, fenced=False))


def test_one_that_registers_is_fenced() -> None:
    story = running()
    with broken(UnfencedHasCaughtUp):
        story.see(1, image=registered(7, fenced=False))


def test_one_that_registers_again_stays_as_it_was() -> None:
    story = running()
    story.see(1, image=registered(6, fenced=False, incarnation=bytes(16)))
