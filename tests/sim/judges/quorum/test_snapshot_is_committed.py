from __future__ import annotations

from strandline.histories.judges.quorum.snapshot_is_committed import SnapshotIsCommitted
from strandline.raft.messages import OffsetAndEpoch

from .stage import broken, stage


def test_a_snapshot_ends_where_the_quorum_has_committed() -> None:
    story = stage(SnapshotIsCommitted)
    story.lead(1, high_watermark=9)
    story.see(2, snapshot=OffsetAndEpoch(9, 1))
    with broken(SnapshotIsCommitted):
        story.see(2, snapshot=OffsetAndEpoch(10, 1))
