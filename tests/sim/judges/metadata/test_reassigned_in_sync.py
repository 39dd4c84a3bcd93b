from __future__ import annotations

from dataclasses import replace
from typing import Any

from strandline.histories.judges.metadata.reassigned_in_sync import ReassignedInSync
from strandline.metadata.image import MetadataImage

from ..quorum.stage import Stage, broken, image, stage

MIN_ISR_2 = {(2, "t"): {"min.insync.replicas": "2"}}


def moving(*in_sync: int) -> Stage:
    """From 1 and 2 to 1 and 3, or so it was wished."""
    story = stage(ReassignedInSync)
    story.see(1, image=moved(5, replicas=(1, 2, 3), isr=in_sync, adding_replicas=(3,), removing_replicas=(2,)))
    return story


def moved(end_offset: int, **partition: Any) -> MetadataImage:
    return replace(image(end_offset, **partition), configs=MIN_ISR_2)


def test_it_ends_once_the_new_one_is_in_sync() -> None:
    moving(1, 2, 3).see(1, image=moved(6, replicas=(1, 3), isr=(1, 3), leader_epoch=1))


def test_it_may_be_called_off() -> None:
    moving(1, 2).see(1, image=moved(6, replicas=(1, 2), isr=(1, 2), leader_epoch=1))


def test_it_does_not_end_before() -> None:
    with broken(ReassignedInSync):
        moving(1, 2).see(1, image=moved(6, replicas=(1, 3), isr=(1,), leader_epoch=1))


def test_it_does_not_end_with_too_few_in_sync() -> None:
    with broken(ReassignedInSync):
        moving(2, 3).see(1, image=moved(6, replicas=(1, 3), isr=(3,), leader=3, leader_epoch=1))
