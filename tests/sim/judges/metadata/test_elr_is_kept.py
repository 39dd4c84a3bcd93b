from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.histories.judges.metadata.elr_is_kept import ElrIsKept
from strandline.metadata.image import MetadataImage

from ..quorum.stage import Stage, broken, image, stage

REPLICAS = (1, 2, 3)


def known(end_offset: int, *, epoch: int = 0, **partition: Any) -> MetadataImage:
    """`epoch` is that of broker 2."""
    made = image(end_offset, **({"replicas": REPLICAS} | partition))
    brokers = {**made.brokers, 2: replace(made.brokers[2], epoch=epoch)}
    return replace(
        made,
        brokers=brokers,
        configs={(2, "t"): {"min.insync.replicas": "2"}},
        features={"eligible.leader.replicas.version": 1},
    )


def alone() -> Stage:
    """Broker 1 is in sync, broker 2 is eligible."""
    story = stage(ElrIsKept)
    story.see(1, image=known(5, isr=(1,), elr=(2,)))
    return story


@pytest.mark.parametrize(
    "after",
    [
        {"isr": (1,), "elr": (2, 3)},
        {"isr": (1, 2)},
        {"isr": (1, 3)},
        {"isr": (), "elr": (1, 2), "leader": -1},
        {"isr": (1,), "replicas": (1, 3)},
        {"isr": (1,), "epoch": 5},
    ],
)
def test_it_stays_or_has_reason_not_to(after: dict[str, Any]) -> None:
    alone().see(1, image=known(6, **after))


def test_it_is_forgotten_with_the_min_isr_that_it_was_eligible_under() -> None:
    after = known(6, isr=(1,))
    alone().see(1, image=replace(after, configs={(2, "t"): {"min.insync.replicas": "3"}}))


def test_it_is_not_forgotten() -> None:
    with broken(ElrIsKept):
        alone().see(1, image=known(6, isr=(), elr=(1,), leader=-1, leader_epoch=1))
