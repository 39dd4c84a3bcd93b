from __future__ import annotations

from typing import Any

import pytest

from strandline.histories.judges.metadata.last_known_elr import LastKnownElr

from ..quorum.stage import broken, image, stage

NOBODY: dict[str, Any] = {"isr": (), "elr": (), "leader": -1, "leader_epoch": 1}


def test_the_last_leader_is_kept_where_nobody_is_left() -> None:
    story = stage(LastKnownElr)
    story.see(1, image=image(5))
    story.see(1, image=image(6, **NOBODY, last_known_elr=(1,)))


@pytest.mark.parametrize("kept", [(), (2,), (1, 2)])
def test_anything_else_is_wrong(kept: tuple[int, ...]) -> None:
    story = stage(LastKnownElr)
    story.see(1, image=image(5))
    with broken(LastKnownElr):
        story.see(1, image=image(6, **NOBODY, last_known_elr=kept))
