"""A follower's role: what it asks its leader for, and what it makes of the answer.

Always true: an answer counts only if the follower is still where it was when it asked, in the same leader epoch (rule A10); batches
are checked before they are written, and the good ones before a bad one are kept; where the logs part, the follower cuts its own by
leader epoch, never by watermark (KIP-101, KIP-279, rule A9), and only then goes on. Where the leader's log ends before the
follower's (OFFSET_OUT_OF_RANGE), it is cut there. The files are cut in `log/truncation.py`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from strandline.errors import ErrorCode, error_code
from strandline.log.epochs import UNDEFINED_EPOCH
from strandline.replica.followers import UNKNOWN
from strandline.wire.fetch import FetchedPartition, FetchPartition

if TYPE_CHECKING:
    from strandline.log.log import Log
    from strandline.replica.partition import Partition


class FetchOutcome(Enum):
    NOTHING = "nothing new"
    ADVANCED = "records, or a newer watermark or log start, were taken"
    TRUNCATED = "the log was cut: ask again at once"
    STALE = "the answer fits no more"
    OUT_OF_RANGE = "the leader has nothing there: ask for its log start and end, then reset"
    FAILED = "ask again later"


class TakenFetch(NamedTuple):
    outcome: FetchOutcome
    bytes: int = 0
    reason: str = ""


NOTHING = TakenFetch(FetchOutcome.NOTHING)
STALE = TakenFetch(FetchOutcome.STALE)


class Following:
    """The role of a partition that another node leads, or none: one object for each leader epoch."""

    __slots__ = ("_partition", "leader_high_watermark")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.leader_high_watermark = UNKNOWN
        """As the leader of this epoch said last."""

    def position(self, max_bytes: int) -> FetchPartition:
        """What to ask the leader for."""
        partition = self._partition
        log = partition.log
        return FetchPartition(
            partition.index,
            partition.state.leader_epoch,
            log.log_end_offset,
            log.epochs.latest,
            log.log_start_offset,
            max_bytes,
        )

    def take(self, asked: FetchPartition, answer: FetchedPartition, now_ms: int) -> TakenFetch:
        """Take the leader's answer; an OSError is the log dir's."""
        leader_epoch, log = self._partition.state.leader_epoch, self._partition.log
        if (
            asked.current_leader_epoch != leader_epoch
            or asked.fetch_offset != log.log_end_offset
            or asked.last_fetched_epoch != log.epochs.latest
        ):
            return STALE
        if answer.error_code:
            return _refused(answer.error_code)
        if answer.diverging_epoch is not None:
            return self._diverging(*answer.diverging_epoch)
        records = answer.records
        taken_bytes = 0
        problem = None
        if records:
            try:
                fetched = log.append_fetched(memoryview(records), leader_epoch, now_ms)
            except OSError:
                # The first of several segments may have been filled. Once it is known to be written, the rest is asked for.
                if log.log_end_offset > asked.fetch_offset:
                    self._partition.after_append()
                raise
            taken_bytes, problem = fetched.bytes, fetched.problem
        advanced = self._advance(taken_bytes, answer.high_watermark, answer.log_start_offset)
        if problem is not None:
            return TakenFetch(FetchOutcome.FAILED, taken_bytes, problem)
        return TakenFetch(FetchOutcome.ADVANCED, taken_bytes) if advanced else NOTHING

    def _advance(self, taken_bytes: int, leader_high_watermark: int, leader_log_start: int) -> bool:
        """Records were written, and the leader said how far it is; True if any of that was new."""
        partition = self._partition
        log = partition.log
        self.leader_high_watermark = leader_high_watermark
        if taken_bytes:
            partition.stats.replication_bytes_in += taken_bytes
            partition.after_append()
        advanced = bool(taken_bytes)
        # What was committed stays so: a new leader whose watermark still lags does not take it back (rule A11).
        high_watermark = min(leader_high_watermark, partition.local_end)
        if high_watermark > partition.high_watermark:
            partition.raise_high_watermark(high_watermark)
            advanced = True
        if leader_log_start > log.log_start_offset:
            log.advance_start(min(leader_log_start, partition.high_watermark))
            advanced = True
        return advanced

    def _diverging(self, epoch: int, end_offset: int) -> TakenFetch:
        log = self._partition.log
        at = truncation_offset(log, epoch, end_offset)
        end_before = log.log_end_offset
        reason = (
            f"the leader's epoch {epoch} ends at {end_offset}, our log had epoch {log.epochs.latest} up to {end_before}"
        )
        self._partition.truncate(at, reason)
        return TakenFetch(FetchOutcome.TRUNCATED, 0, reason)

    def reset(self, leader_start: int, leader_end: int) -> None:
        """The leader has nothing at our log end: it was elected unclean and is shorter, or it has deleted what comes next."""
        partition = self._partition
        log_end = partition.log.log_end_offset
        if leader_end < log_end:
            partition.truncate(leader_end, f"the leader's log ends at {leader_end}, before ours at {log_end}")
        elif leader_start > log_end:
            partition.start_at(leader_start, f"the leader's log starts at {leader_start}, ours ends at {log_end}")


def _refused(code: int) -> TakenFetch:
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return TakenFetch(FetchOutcome.OUT_OF_RANGE, 0, "the leader's log has no such offset")
    return TakenFetch(FetchOutcome.FAILED, 0, f"the leader refused with {error_code(code).name}")


def truncation_offset(log: Log, epoch: int, end_offset: int) -> int:
    """Where to cut, if the leader's largest epoch at most our last one is `epoch` and ends at `end_offset`.

    Our own largest epoch at most that one may be smaller: then we cut where ours ends, and ask again.
    """
    own_epoch, own_end = log.epochs.end_offset_for(epoch, log.log_end_offset)
    if own_epoch == UNDEFINED_EPOCH:
        return min(end_offset, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)
