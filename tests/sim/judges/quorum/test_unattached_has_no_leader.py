from __future__ import annotations

from strandline.histories.judges.quorum.unattached_has_no_leader import UnattachedHasNoLeader

from .stage import broken, stage


def test_who_is_unattached_knows_no_leader() -> None:
    story = stage(UnattachedHasNoLeader)
    story.see(1, "unattached")
    story.see(1, "follower", leader_id=2)
    with broken(UnattachedHasNoLeader):
        story.see(1, "unattached")
