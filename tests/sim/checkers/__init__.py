"""The properties of the quorum that are checked after every turn of every node, one class each (protocol, section 1).

Always true: a checker only looks; it raises Violation the first time that its property does not hold.
"""

from __future__ import annotations

from tests.sim.checkers.committed_data import CommittedIsKept, ConsistentCommittedData
from tests.sim.checkers.durability import FetchAfterFlush, FlushedIsOnDevice, MajorityReachedHighWatermark
from tests.sim.checkers.epochs import MonotonicEpoch, SaveBeforeSend
from tests.sim.checkers.high_watermark import CommittedInOwnEpoch, MonotonicHighWatermark
from tests.sim.checkers.images import EqualImages, FencedIsNotInSync, InSyncReplicas
from tests.sim.checkers.leadership import LeaderCompleteness, SingleLeader, StableLeadership
from tests.sim.checkers.snapshots import LeaderNeverLoadsSnapshot, SnapshotAtLogStart
from tests.sim.checkers.votes import OneVote, VoteBeforeReply
from tests.sim.sight import Checker

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
