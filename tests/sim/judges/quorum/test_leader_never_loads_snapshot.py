from __future__ import annotations

from strandline.histories.judges.quorum.leader_never_loads_snapshot import LeaderNeverLoadsSnapshot
from strandline.histories.wire import FETCH_SNAPSHOT, QuorumMessage

from .stage import broken, stage


def test_a_leader_does_not_load_a_snapshot() -> None:
    story = stage(LeaderNeverLoadsSnapshot)
    story.lead(1, log_end_offset=10)
    with broken(LeaderNeverLoadsSnapshot):
        story.observed.see_sent(QuorumMessage(1, FETCH_SNAPSHOT, 1))
    with broken(LeaderNeverLoadsSnapshot):
        story.lead(1, log_end_offset=8)
