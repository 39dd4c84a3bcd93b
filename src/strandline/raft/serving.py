"""Serving: what a leader answers to the replicas that fetch from it, and how their Fetches move the high watermark.

Always true: a replica's Fetch counts for what it says it has only after its last epoch and offset were found in the leader's
own log (D10); a Fetch without anything new to return waits, and is answered at once when there is, or when the leader resigns.
"""

from __future__ import annotations

from math import inf
from typing import Final

from strandline.errors import ErrorCode
from strandline.raft import high_watermark, reconfiguration, tracking
from strandline.raft.core import Core
from strandline.raft.effects import SendResponse
from strandline.raft.messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    RaftFetchRequest,
    RaftFetchResponse,
)
from strandline.raft.states import AnswerTo, Leader, Parked

BOOTSTRAP_SNAPSHOT: Final = OffsetAndEpoch(0, 0)
"""What a disk was formatted with. It is not for other nodes: the first leader writes its content into the log."""
PARKED_MAX: Final = 10_000
"""More Fetches than this do not wait, they are answered with nothing."""


def leader_error(core: Core, epoch: int) -> ErrorCode:
    """Why a request that only the leader of this epoch can serve is refused; NONE if it is not."""
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(core.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def handle_fetch(core: Core, request: RaftFetchRequest, answer: AnswerTo, now: float) -> None:
    is_possible = (
        request.max_wait_s >= 0
        and request.offset >= 0
        and 0 <= request.last_fetched_epoch <= request.epoch
        and request.replica.id != core.me.id
    )
    error = leader_error(core, request.epoch) if is_possible else ErrorCode.INVALID_REQUEST
    leader = core.state
    if error is not ErrorCode.NONE or not isinstance(leader, Leader):
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            core.fetch_refused(request.replica.id)
        core.answer(answer, core.fetch_error(error))
        return
    refusal = _divergence(core, leader, request)
    if refusal is not None:
        core.answer(answer, refusal)
        return
    if (replica := tracking.replica(core, leader, request.replica, now)) is not None:
        replica.fetched(request.offset, core.log.end_offset, now)
        tracking.heard_from(core, leader, request.replica, now)
        if core.voters.is_voter(request.replica):
            advance(core, leader)
    if _has_more(core, leader, request) or request.max_wait_s == 0 or len(leader.parked) >= PARKED_MAX:
        core.answer(answer, _records(core, leader, request))
    else:
        leader.parked.append(Parked(request, answer, now + request.max_wait_s))


def _divergence(core: Core, leader: Leader, request: RaftFetchRequest) -> RaftFetchResponse | None:
    """What to answer a replica whose log is not a prefix of the leader's, or lies before its start; None if it is."""
    log = core.log
    response = _records(core, leader, request)._replace(read_from=None)
    snapshot = log.latest_snapshot
    if request.offset == 0 and snapshot is not None and snapshot != BOOTSTRAP_SNAPSHOT:
        return response._replace(snapshot_id=snapshot)
    if request.offset == 0 and log.start_offset == 0:
        return None
    end = log.end_of_epoch(request.last_fetched_epoch)
    if snapshot is not None and (request.offset < log.start_offset or end.offset < 0):
        return response._replace(snapshot_id=snapshot)
    if end.offset < 0:
        return response._replace(diverging_epoch=OffsetAndEpoch(log.start_offset, 0))
    if end.epoch != request.last_fetched_epoch or end.offset < request.offset:
        return response._replace(diverging_epoch=end)
    return None


def _has_more(core: Core, leader: Leader, request: RaftFetchRequest) -> bool:
    known = -1 if leader.high_watermark is None else leader.high_watermark
    return core.log.end_offset > request.offset or known > request.high_watermark


def _records(core: Core, leader: Leader, request: RaftFetchRequest) -> RaftFetchResponse:
    return RaftFetchResponse(
        ErrorCode.NONE,
        core.epoch,
        core.me.id,
        -1 if leader.high_watermark is None else leader.high_watermark,
        core.log.start_offset,
        read_from=request.offset if core.log.end_offset > request.offset else None,
        leader_address=core.leader_address,
    )


def answer_parked(core: Core, leader: Leader, now: float = -inf) -> None:
    """Answer the Fetches for which there is something new by now, or that have waited long enough."""
    waiting, leader.parked = leader.parked, []
    for parked in waiting:
        if now >= parked.deadline or _has_more(core, leader, parked.request):
            core.answer(parked.answer, _records(core, leader, parked.request))
        else:
            leader.parked.append(parked)


def cancel(leader: Leader, answer: AnswerTo) -> None:
    """The sender of that request is gone: if it was a Fetch that waits, it waits no longer."""
    leader.parked = [parked for parked in leader.parked if parked.answer is not answer]


def advance(core: Core, leader: Leader) -> None:
    """A log has grown, on this device or another: move the high watermark (D7). The leader counts what it flushed (D9)."""
    ends = [
        core.log.flushed_offset if node.key.id == core.me.id else leader.voters[node.key.id].end_offset
        for node in core.voters
    ]
    advanced = high_watermark.advance(leader.high_watermark, ends, leader.epoch_start_offset)
    if advanced is not None and advanced != leader.high_watermark:
        leader.high_watermark = advanced
        core.commit(advanced)
        reconfiguration.committed(core, leader, advanced)
        answer_parked(core, leader)


def handle_fetch_snapshot(core: Core, request: FetchSnapshotRequest, answer: AnswerTo, now: float) -> None:
    error, size = _snapshot_error(core, request)
    response = FetchSnapshotResponse(error, core.epoch, core.leader_id, leader_address=core.leader_address)
    if error is ErrorCode.NONE and isinstance(core.state, Leader):
        tracking.heard_from(core, core.state, request.replica, now)
        response = response._replace(snapshot_id=request.snapshot_id, size=size, position=request.position)
    core.effects.append(SendResponse(answer, response))


def _snapshot_error(core: Core, request: FetchSnapshotRequest) -> tuple[ErrorCode, int]:
    if request.max_bytes <= 0 or request.replica.id == core.me.id:
        return ErrorCode.INVALID_REQUEST, 0
    if (error := leader_error(core, request.epoch)) is not ErrorCode.NONE:
        return error, 0
    size = core.log.snapshot_size(request.snapshot_id)
    if size is None or request.snapshot_id == BOOTSTRAP_SNAPSHOT:
        return ErrorCode.SNAPSHOT_NOT_FOUND, 0
    if not 0 <= request.position < size:
        return ErrorCode.POSITION_OUT_OF_RANGE, 0
    return ErrorCode.NONE, size


def check_invariants(core: Core, leader: Leader) -> None:
    known = -1 if leader.high_watermark is None else leader.high_watermark
    if leader.high_watermark is not None:
        assert leader.epoch_start_offset < known <= core.log.end_offset, (
            f"high watermark {known} of an epoch that began at {leader.epoch_start_offset}, in a log to {core.log.end_offset}"
        )
        assert known == core.committed, f"high watermark {known}, but {core.committed} is committed"
    for request, _, _ in leader.parked:
        assert request.epoch == core.epoch, f"a Fetch of epoch {request.epoch} waits in {core.epoch}"
        assert known <= request.high_watermark, (
            f"a Fetch waits with high watermark {request.high_watermark}, and there is {known}"
        )
