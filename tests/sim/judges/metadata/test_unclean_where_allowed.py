from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.histories.judges.metadata.unclean_where_allowed import RECOVERING, UncleanWhereAllowed
from strandline.metadata.image import MetadataImage

from ..quorum.stage import broken, image, stage


def with_config(end_offset: int, unclean: str | None, **partition: Any) -> MetadataImage:
    known = image(end_offset, **partition)
    configs = {} if unclean is None else {(2, "t"): {"unclean.leader.election.enable": unclean}}
    return replace(known, configs=configs)


LEADERLESS = {"isr": (), "leader": -1, "last_known_elr": (1,)}
BY_2: dict[str, Any] = {"isr": (2,), "leader": 2, "leader_epoch": 1, "leader_recovery_state": RECOVERING}


def test_a_topic_that_allows_it_may_have_one() -> None:
    story = stage(UncleanWhereAllowed)
    story.see(1, image=with_config(5, "true", **LEADERLESS))
    story.see(1, image=with_config(6, "true", **BY_2))


@pytest.mark.parametrize("unclean", [None, "false"])
def test_another_topic_may_not(unclean: str | None) -> None:
    story = stage(UncleanWhereAllowed)
    story.see(1, image=with_config(5, unclean, **LEADERLESS))
    with broken(UncleanWhereAllowed):
        story.see(1, image=with_config(6, unclean, **BY_2))


def test_the_last_one_that_led_may_lead_again() -> None:
    story = stage(UncleanWhereAllowed)
    story.see(1, image=with_config(5, None, **LEADERLESS))
    story.see(1, image=with_config(6, None, **BY_2 | {"isr": (1,), "leader": 1}))
