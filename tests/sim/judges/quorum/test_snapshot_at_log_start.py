from __future__ import annotations

from strandline.histories.judges.quorum.snapshot_at_log_start import SnapshotAtLogStart
from strandline.raft.messages import OffsetAndEpoch

from .stage import broken, stage


def test_a_log_begins_at_0_or_at_the_end_of_a_snapshot() -> None:
    story = stage(SnapshotAtLogStart)
    story.shelves[1].checkpoints.append(OffsetAndEpoch(20, 1))
    story.see(1, log_start_offset=20, log_end_offset=30)
    with broken(SnapshotAtLogStart):
        story.see(1, log_start_offset=25)
