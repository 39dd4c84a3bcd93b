from __future__ import annotations

from typing import Any

import pytest

from strandline.histories.judges.metadata.partition_epochs import PartitionEpochs

from ..quorum.stage import broken, image, stage


def test_epochs_rise_with_what_changes() -> None:
    story = stage(PartitionEpochs)
    story.see(1, image=image(5))
    story.see(1, image=image(6, isr=(1,)))
    story.see(1, image=image(7, leader=2, leader_epoch=1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"isr": (1,), "leader_epoch": 3, "partition_epoch": 5},
        {"leader": 2, "leader_epoch": 3},
        {"leader": 2, "leader_epoch": 2},
        {"replicas": (1,), "isr": (1,), "leader_epoch": 3},
    ],
)
def test_other_changes_are_wrong(wrong: dict[str, Any]) -> None:
    story = stage(PartitionEpochs)
    story.see(1, image=image(5, leader_epoch=3))
    with broken(PartitionEpochs):
        story.see(1, image=image(6, **wrong))
