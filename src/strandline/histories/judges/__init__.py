"""The properties of the quorum that are checked after every turn of every node, one class each (protocol, section 1).

Always true: a checker only looks; it raises Violation the first time that its property does not hold.
"""

from __future__ import annotations

from strandline.histories.judges.committed_data import CommittedIsKept, ConsistentCommittedData
from strandline.histories.judges.durability import FetchAfterFlush, FlushedIsOnDevice, MajorityReachedHighWatermark
from strandline.histories.judges.epochs import MonotonicEpoch, SaveBeforeSend
from strandline.histories.judges.high_watermark import CommittedInOwnEpoch, MonotonicHighWatermark
from strandline.histories.judges.images import EqualImages, FencedIsNotInSync, InSyncReplicas
from strandline.histories.judges.leadership import LeaderCompleteness, SingleLeader, StableLeadership
from strandline.histories.judges.snapshots import LeaderNeverLoadsSnapshot, SnapshotAtLogStart
from strandline.histories.judges.votes import OneVote, VoteBeforeReply
from strandline.histories.sight import Checker

ALWAYS: tuple[type[Checker], ...] = (
    MonotonicHighWatermark,
    CommittedInOwnEpoch,
    MonotonicEpoch,
    SaveBeforeSend,
    MajorityReachedHighWatermark,
    FetchAfterFlush,
    FlushedIsOnDevice,
    SingleLeader,
    LeaderCompleteness,
    OneVote,
    VoteBeforeReply,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    CommittedIsKept,
    ConsistentCommittedData,
    EqualImages,
    FencedIsNotInSync,
    InSyncReplicas,
)

__all__ = ["ALWAYS", *(checker.__name__ for checker in ALWAYS), "StableLeadership"]
