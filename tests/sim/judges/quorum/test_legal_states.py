from __future__ import annotations

from typing import Any

import pytest

from strandline.histories.judges.quorum.legal_states import LegalStates

from .stage import broken, stage


def test_what_a_node_is_fits_whom_it_follows() -> None:
    story = stage(LegalStates)
    story.see(1, "unattached")
    story.see(1, "prospective", leader_id=2)
    story.see(1, "candidate", leader_id=-1)
    story.lead(1)
    story.see(1, "resigned", leader_id=-1)
    story.see(1, "follower", leader_id=2)


@pytest.mark.parametrize(
    ("role", "wrong"),
    [
        ("follower", {"leader_id": -1}),
        ("follower", {"leader_id": 1}),
        ("candidate", {"leader_id": 2}),
        ("resigned", {"leader_id": 1}),
        ("leader", {"leader_id": 2}),
        ("unattached", {"log_end_offset": 4, "flushed_offset": 5}),
    ],
)
def test_other_states_are_illegal(role: str, wrong: dict[str, Any]) -> None:
    with broken(LegalStates):
        stage(LegalStates).see(1, role, **wrong)
