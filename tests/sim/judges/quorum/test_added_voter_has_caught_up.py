from __future__ import annotations

import pytest

from strandline.histories.judges.quorum.added_voter_has_caught_up import AddedVoterHasCaughtUp

from .stage import broken, stage, voters


@pytest.mark.parametrize(("end", "is_sound"), [(40, True), (30, True), (29, False), (0, False)])
def test_a_new_voter_has_what_was_committed_a_while_ago(end: int, is_sound: bool) -> None:
    story = stage(AddedVoterHasCaughtUp)
    story.now = 1.0
    story.lead(1, log_end_offset=30, high_watermark=30)
    story.see(4, "observer", log_end_offset=end)
    story.now = 9.0
    story.lead(1, log_end_offset=40, high_watermark=40)
    if is_sound:
        story.lead(1, log_end_offset=41, voters=voters(1, 2, 3, 4))
    else:
        with broken(AddedVoterHasCaughtUp):
            story.lead(1, log_end_offset=41, voters=voters(1, 2, 3, 4))
