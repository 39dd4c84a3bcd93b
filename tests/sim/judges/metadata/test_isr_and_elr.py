from __future__ import annotations

from typing import Any

import pytest

from strandline.histories.judges.metadata.isr_and_elr import IsrAndElr

from ..quorum.stage import broken, image, stage


@pytest.mark.parametrize("wrong", [{"isr": (1, 3)}, {"elr": (2,)}, {"isr": (2,)}, {"isr": (1,), "elr": (2,)}])
def test_in_sync_replicas_are_replicas_and_apart_from_eligible_ones(wrong: dict[str, Any]) -> None:
    story = stage(IsrAndElr)
    story.see(1, image=image(5))
    story.see(1, image=image(6, isr=(), elr=(1, 2), leader=-1))
    with broken(IsrAndElr):
        story.see(1, image=image(7, **wrong))
