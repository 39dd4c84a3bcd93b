"""The judges: one file for each property, a class named after it.

    quorum/       KRaft: election, log, snapshots, voters              after every turn of a node
    metadata/     the images: I5, I6, I9, I10, B6, B10, B12-B15        with every committed image
    replication/  partitions: I1-I4, I7, I8, I11, A and B rules        after every turn, with every image and every answer
    clients/      sends, their results and reads (Jepsen)              at the end
    groups/       offsets, owners and coordinators: C10, C12, C13       with every request, answer and shard; at the end
    compaction/   the last value of each key                           at the end
    invariants.py state objects check themselves                       after every turn that changed one

Always true: a judge only looks; it raises Violation the first time that its property does not hold, and no setting
loosens it.
"""

from __future__ import annotations

from strandline.histories.judges.invariants import QuorumInvariants, ReplicaInvariants
from strandline.histories.judges.metadata.altered_by_the_newest import AlteredByTheNewest
from strandline.histories.judges.metadata.elr_is_kept import ElrIsKept
from strandline.histories.judges.metadata.endpoint_of_listener import EndpointOfListener
from strandline.histories.judges.metadata.equal_images import EqualImages
from strandline.histories.judges.metadata.fenced_not_in_isr import FencedNotInIsr
from strandline.histories.judges.metadata.isr_and_elr import IsrAndElr
from strandline.histories.judges.metadata.last_known_elr import LastKnownElr
from strandline.histories.judges.metadata.offline_dir_not_in_isr import OfflineDirNotInIsr
from strandline.histories.judges.metadata.partition_epochs import PartitionEpochs
from strandline.histories.judges.metadata.reassigned_in_sync import ReassignedInSync
from strandline.histories.judges.metadata.stopped_without_leading import StoppedWithoutLeading
from strandline.histories.judges.metadata.unclean_where_allowed import UncleanWhereAllowed
from strandline.histories.judges.metadata.unfenced_has_caught_up import UnfencedHasCaughtUp
from strandline.histories.judges.quorum.added_voter_has_caught_up import AddedVoterHasCaughtUp
from strandline.histories.judges.quorum.check_quorum import CheckQuorum
from strandline.histories.judges.quorum.committed_in_own_epoch import CommittedInOwnEpoch
from strandline.histories.judges.quorum.committed_is_kept import CommittedIsKept
from strandline.histories.judges.quorum.consistent_committed_data import ConsistentCommittedData
from strandline.histories.judges.quorum.elected_by_majority import ElectedByMajority
from strandline.histories.judges.quorum.epoch_begun_by_candidate import EpochBegunByCandidate
from strandline.histories.judges.quorum.fetch_after_flush import FetchAfterFlush
from strandline.histories.judges.quorum.flushed_is_on_device import FlushedIsOnDevice
from strandline.histories.judges.quorum.flushed_survives import FlushedSurvives
from strandline.histories.judges.quorum.leader_has_all_committed import LeaderHasAllCommitted
from strandline.histories.judges.quorum.leader_never_loads_snapshot import LeaderNeverLoadsSnapshot
from strandline.histories.judges.quorum.legal_states import LegalStates
from strandline.histories.judges.quorum.majority_reached_high_watermark import MajorityReachedHighWatermark
from strandline.histories.judges.quorum.monotonic_epoch import MonotonicEpoch
from strandline.histories.judges.quorum.monotonic_high_watermark import MonotonicHighWatermark
from strandline.histories.judges.quorum.no_vote_beside_leader import NoVoteBesideLeader
from strandline.histories.judges.quorum.one_vote import OneVote
from strandline.histories.judges.quorum.one_voter_change_at_a_time import OneVoterChangeAtATime
from strandline.histories.judges.quorum.only_leader_has_pending_acks import OnlyLeaderHasPendingAcks
from strandline.histories.judges.quorum.pre_vote_without_leader import PreVoteWithoutLeader
from strandline.histories.judges.quorum.save_before_send import SaveBeforeSend
from strandline.histories.judges.quorum.single_leader import SingleLeader
from strandline.histories.judges.quorum.snapshot_at_log_start import SnapshotAtLogStart
from strandline.histories.judges.quorum.snapshot_is_committed import SnapshotIsCommitted
from strandline.histories.judges.quorum.stable_leadership import StableLeadership
from strandline.histories.judges.quorum.unattached_has_no_leader import UnattachedHasNoLeader
from strandline.histories.judges.quorum.vote_before_reply import VoteBeforeReply
from strandline.histories.judges.replication.acknowledged_is_committed import AcknowledgedIsCommitted
from strandline.histories.judges.replication.behind_leaves_isr import BehindLeavesIsr
from strandline.histories.judges.replication.below_log_start import BelowLogStart
from strandline.histories.judges.replication.candidate_completeness import CandidateCompleteness
from strandline.histories.judges.replication.committed_is_somewhere import CommittedIsSomewhere
from strandline.histories.judges.replication.current_leader_epoch import CurrentLeaderEpoch
from strandline.histories.judges.replication.end_does_not_fall import EndDoesNotFall
from strandline.histories.judges.replication.enough_in_sync import EnoughInSync
from strandline.histories.judges.replication.epoch_begins import EpochBegins
from strandline.histories.judges.replication.epochs_match_log import EpochsMatchLog
from strandline.histories.judges.replication.flushed_survives import ReplicaFlushedSurvives
from strandline.histories.judges.replication.follower_positions import FollowerPositions
from strandline.histories.judges.replication.high_watermark import ReplicaHighWatermark
from strandline.histories.judges.replication.in_sync_incarnation import InSyncIncarnation
from strandline.histories.judges.replication.joins_caught_up import JoinsCaughtUp
from strandline.histories.judges.replication.leader_completeness import LeaderCompleteness
from strandline.histories.judges.replication.log_matching import LogMatching
from strandline.histories.judges.replication.maximal_isr import MaximalIsr
from strandline.histories.judges.replication.nothing_written_below_min_isr import NothingWrittenBelowMinIsr
from strandline.histories.judges.replication.one_fetcher import OneFetcher
from strandline.histories.judges.replication.only_superseded_is_removed import OnlySupersededIsRemoved
from strandline.histories.judges.replication.only_written_is_kept import OnlyWrittenIsKept
from strandline.histories.judges.replication.shrunk_only_late import ShrunkOnlyLate
from strandline.histories.judges.replication.waiting_fetch_is_woken import WaitingFetchIsWoken
from strandline.histories.quorum_observation import QuorumJudge
from strandline.histories.replica_observation import ReplicaJudge

QUORUM: tuple[type[QuorumJudge], ...] = (
    LegalStates,
    UnattachedHasNoLeader,
    MonotonicHighWatermark,
    CommittedInOwnEpoch,
    MonotonicEpoch,
    SaveBeforeSend,
    MajorityReachedHighWatermark,
    FetchAfterFlush,
    FlushedIsOnDevice,
    FlushedSurvives,
    SingleLeader,
    LeaderHasAllCommitted,
    OneVote,
    VoteBeforeReply,
    ElectedByMajority,
    OnlyLeaderHasPendingAcks,
    OneVoterChangeAtATime,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    CommittedIsKept,
    ConsistentCommittedData,
    EpochBegunByCandidate,
    CheckQuorum,
    StableLeadership,
    NoVoteBesideLeader,
    PreVoteWithoutLeader,
    SnapshotIsCommitted,
    AddedVoterHasCaughtUp,
)
METADATA: tuple[type[QuorumJudge], ...] = (
    EqualImages,
    FencedNotInIsr,
    IsrAndElr,
    ElrIsKept,
    LastKnownElr,
    PartitionEpochs,
    ReassignedInSync,
    UnfencedHasCaughtUp,
    StoppedWithoutLeading,
    AlteredByTheNewest,
    UncleanWhereAllowed,
    OfflineDirNotInIsr,
    EndpointOfListener,
)
REPLICATION: tuple[type[ReplicaJudge], ...] = (
    OnlyWrittenIsKept,
    OnlySupersededIsRemoved,
    ReplicaFlushedSurvives,
    LeaderCompleteness,
    LogMatching,
    CandidateCompleteness,
    MaximalIsr,
    InSyncIncarnation,
    ReplicaHighWatermark,
    EnoughInSync,
    CommittedIsSomewhere,
    OneFetcher,
    CurrentLeaderEpoch,
    BelowLogStart,
    NothingWrittenBelowMinIsr,
    ShrunkOnlyLate,
    BehindLeavesIsr,
    AcknowledgedIsCommitted,
    EndDoesNotFall,
    FollowerPositions,
    EpochBegins,
    EpochsMatchLog,
    JoinsCaughtUp,
    WaitingFetchIsWoken,
)


def quorum_judges() -> list[QuorumJudge]:
    return [judge() for judge in (*QUORUM, *METADATA, QuorumInvariants)]


def replica_judges() -> list[ReplicaJudge]:
    return [judge() for judge in (*REPLICATION, ReplicaInvariants)]
