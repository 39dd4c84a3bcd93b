from __future__ import annotations

from strandline.histories.judges.quorum.single_leader import SingleLeader

from .stage import broken, stage


def test_an_epoch_has_one_leader_in_memory_and_on_disk() -> None:
    story = stage(SingleLeader)
    story.lead(1, epoch=3)
    story.see(2, epoch=3, leader_id=1)
    story.lead(2, epoch=4)
    with broken(SingleLeader):
        story.save(3, 4, leader_id=3)
