"""What can be seen of a node's part in the quorum: its Raft, its metadata log and its committed image.

Always true: the view is live. `mark` and `is_as` say cheaply whether anything has changed since the last look.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.controller.liveness import Liveness
from strandline.metadata.image import MetadataImage
from strandline.node.observation.logs import ObservedLog
from strandline.node.quorum.quorum import Quorum
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.states import Leader, State
from strandline.raft.voters import VoterSet


class QuorumMark(NamedTuple):
    """What a node's part in the quorum was at one look."""

    state: State
    committed: int | None
    image: MetadataImage
    log_start_offset: int
    log_end_offset: int
    flushed_offset: int
    high_watermark: int | None


class ObservedQuorum:
    """A node's Raft, its metadata log and its committed image, once Raft has begun, and which brokers it has heard."""

    __slots__ = ("_liveness", "_log", "_quorum", "_raft")

    def __init__(self, quorum: Quorum, liveness: Liveness) -> None:
        self._liveness = liveness
        self._quorum = quorum
        self._raft = quorum.raft
        self._log = quorum.log

    @property
    def role(self) -> str:
        """Unattached, Prospective, Candidate, Follower, Leader or Resigned."""
        return self._raft.role

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def leader_id(self) -> int:
        """-1 if it is not known."""
        return self._raft.leader_id

    @property
    def voters(self) -> VoterSet:
        return self._raft.voters

    @property
    def high_watermark(self) -> int | None:
        """None on a new leader, until it has committed something in its epoch."""
        return self._raft.high_watermark

    @property
    def committed_end(self) -> int:
        """Everything below was ever known here to be committed; it never falls."""
        return self._quorum.high_watermark

    @property
    def log(self) -> ObservedLog:
        return self._quorum.log

    @property
    def image(self) -> MetadataImage:
        """The committed one."""
        return self._quorum.committed

    @property
    def pending_end(self) -> int:
        """Where the newest decision ends that is not answered yet; -1 if there is none."""
        return self._quorum.pending_end

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self._quorum.latest_snapshot

    @property
    def is_active_controller(self) -> bool:
        return self._quorum.is_active

    # Changes

    def mark(self) -> QuorumMark:
        raft, log = self._raft, self._log
        return QuorumMark(
            raft.state,
            raft.committed,
            self._quorum.committed,
            log.log_start_offset,
            log.log_end_offset,
            log.recovery_point,
            raft.high_watermark,
        )

    def is_as(self, mark: QuorumMark) -> bool:
        """Nothing has changed since the mark was taken. An epoch, a leader or a role comes with another state,
        voters come with a longer or shorter log."""
        raft, log = self._raft, self._log
        state, committed, image, log_start_offset, log_end_offset, flushed_offset, high_watermark = mark
        return (
            raft.state is state
            and raft.committed == committed
            and self._quorum.committed is image
            and log.log_end_offset == log_end_offset
            and log.recovery_point == flushed_offset
            and log.log_start_offset == log_start_offset
            and (not isinstance(state, Leader) or state.high_watermark == high_watermark)
        )

    def check_invariants(self) -> None:
        self._quorum.check_invariants()
        self._raft.check_invariants()
        self._log.check_invariants()
        self._liveness.check_invariants()
