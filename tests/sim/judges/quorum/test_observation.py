"""What the observation itself keeps: the coverage, the newest image, the moment of a problem."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.histories.coverage import ERROR, QUORUM, SNAPSHOT
from strandline.histories.judges.quorum.unattached_has_no_leader import UnattachedHasNoLeader
from strandline.histories.outcome import Problem
from strandline.histories.quorum_observation import Violation
from strandline.raft.messages import OffsetAndEpoch

from .stage import image, stage


def test_transitions_elections_truncations_and_snapshots_are_counted() -> None:
    story = stage(UnattachedHasNoLeader)
    story.see(1, "prospective", log_end_offset=9)
    story.see(1, "candidate")
    story.lead(1, epoch=2)
    story.see(1, "follower", epoch=3, leader_id=2, log_end_offset=7)
    story.see(1, "follower", snapshot=OffsetAndEpoch(5, 1))
    story.see(1, "follower", snapshot=OffsetAndEpoch(20, 3), log_start_offset=20, log_end_offset=20)
    story.see(1, "unattached", life=2, leader_id=-1)
    story.shelves[2].errors[ErrorCode.NOT_CONTROLLER] = 4
    story.observed.finish()
    assert dict(story.observed.coverage) == {
        (QUORUM, "prospective -> candidate"): 1,
        (QUORUM, "candidate -> leader"): 1,
        (QUORUM, "election"): 1,
        (QUORUM, "leader -> follower"): 1,
        (QUORUM, "truncation"): 1,
        (SNAPSHOT, "taken"): 1,
        (SNAPSHOT, "fetched"): 1,
        (ERROR, "NOT_CONTROLLER"): 4,
    }


def test_a_violation_is_a_problem_with_its_moment() -> None:
    story = stage(UnattachedHasNoLeader)
    story.now = 2.5
    with pytest.raises(Violation) as caught:
        story.see(1, "unattached", leader_id=2)
    assert caught.value.problem == Problem(
        "UnattachedHasNoLeader", 2.5, "n1: is unattached in epoch 1, and knows the leader 2"
    )


def test_the_newest_image_is_kept() -> None:
    story = stage(UnattachedHasNoLeader)
    newest = image(9)
    story.see(1, image=newest)
    story.see(2, image=image(5))
    assert story.observed.image is newest
