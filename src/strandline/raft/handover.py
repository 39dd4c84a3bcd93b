"""The beginning and the end of a leadership, as the voters hear of it: BeginQuorumEpoch, EndQuorumEpoch.

Always true: a new leader notifies each voter until it has heard from it; one that resigns says who should succeed it, the
voter with the longest log first (D15). Neither is needed for safety: a voter that missed it finds out later. Any client can send
them: they count once the leader's own answer, from where the voters' record says it is, confirms them (SEC-Z16).
"""

from __future__ import annotations

from math import inf

from strandline.errors import ErrorCode
from strandline.raft import discovery, following
from strandline.raft.core import EPOCH_MAX, Core
from strandline.raft.elections import is_meant
from strandline.raft.events import Destination
from strandline.raft.messages import (
    NO_NODE,
    Address,
    BeginQuorumEpochRequest,
    Endpoints,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
)
from strandline.raft.states import AnswerTo, Follower, Leader, Prospective, Resigned

BEGIN = "begin quorum epoch"
END = "end quorum epoch"


# A leader begins


def announce(core: Core, leader: Leader, now: float) -> float:
    """Notify the voters that have not fetched for a while: at first all of them."""
    interval_s = core.timings.fetch_timeout_s / 2
    deadline = inf
    for node in core.other_voters():
        replica, slot = leader.voters[node.key.id], (BEGIN, node.key.id)
        due_at = max(core.outbox.ready_at(slot), (replica.last_fetch_at or -inf) + interval_s)
        if due_at <= now:
            request = BeginQuorumEpochRequest(node.key, core.epoch, core.me.id, core.own.endpoints)
            core.outbox.send(core.effects, slot, Destination(node.key.id, node.address), request)
            due_at = inf
        deadline = min(deadline, due_at)
    return deadline


def handle_begin_response(core: Core, leader: Leader, node_id: int, response: QuorumEpochResponse, now: float) -> None:
    if core.learn(response.epoch, response.leader_id, response.leader_address, now):
        return
    slot = (BEGIN, node_id)
    if response.error is ErrorCode.NONE:
        core.outbox.succeeded(slot)
        core.outbox.wait(slot, now + core.timings.fetch_timeout_s / 2)
    else:
        core.outbox.failed(slot, now)


def handle_begin(core: Core, request: BeginQuorumEpochRequest, answer: AnswerTo, now: float) -> None:
    error = _claim_error(core, request.epoch, request.leader_id)
    if error is ErrorCode.NONE:
        _begun(core, request, now)
        if request.epoch > core.epoch:
            # Not known yet. The leader says it again after a pause, as with this error Kafka does, until this node fetches.
            error = ErrorCode.BROKER_NOT_AVAILABLE
    if error is ErrorCode.NONE and not is_meant(core, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    core.answer(answer, core.quorum_response(error, request.epoch))


def _begun(core: Core, request: BeginQuorumEpochRequest, now: float) -> None:
    """A request says that this leader has begun its epoch. A node that has voted for it believes that, the others ask the leader.
    A voter that is behind may have voted for one that it does not know: where that is, only the request says."""
    epoch, leader_id = request.epoch, request.leader_id
    voted = core.election.voted
    reported = _address(core, request.leader_endpoints)
    if epoch == core.epoch and core.election.leader_id == NO_NODE and voted is not None and voted.id == leader_id:
        core.learn(epoch, leader_id, reported, now)
    if (epoch, leader_id) != (core.epoch, core.election.leader_id) or isinstance(core.state, Prospective):
        discovery.confirm(core, leader_id, now)
    elif isinstance(core.state, Follower):
        core.report_address(leader_id, reported)
        core.outbox.succeeded(following.FETCH)  # it is there: no more waiting before the next Fetch


def _claim_error(core: Core, epoch: int, leader_id: int) -> ErrorCode:
    """Why it can't be that this leader has this epoch."""
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_id < 0 or leader_id == core.me.id or not core.is_believable(epoch):
        return ErrorCode.INVALID_REQUEST
    if epoch == core.epoch and core.election.leader_id not in (NO_NODE, leader_id):
        return ErrorCode.INVALID_REQUEST  # an epoch has one leader, and it is another
    if core.history.kraft_version == 0 and core.voters.get(leader_id) is None:
        return ErrorCode.INCONSISTENT_VOTER_SET
    return ErrorCode.NONE


def _address(core: Core, endpoints: Endpoints) -> Address | None:
    """Where the leader listens for the quorum: under the name that this node's own listener has, if it says so."""
    for name in core.own.endpoints:
        if name in endpoints:
            return endpoints[name]
    return next(iter(endpoints.values()), None)


# A leader resigns


def poll_resigned(core: Core, resigned: Resigned, now: float) -> float:
    if core.is_only_voter and core.may_campaign:
        core.to_prospective(now)
        return now
    if now >= resigned.ends_at and not core.is_stopping:
        # Out of this epoch for good: it must neither vote in it nor follow itself.
        if core.epoch + 1 >= EPOCH_MAX:
            core.fail(f"epoch {core.epoch} is the last one")
            return inf
        core.to_unattached(core.epoch + 1, now + core.election_timeout())
        return now
    deadline = inf if core.is_stopping else resigned.ends_at
    for node in core.other_voters():
        slot = (END, node.key.id)
        if node.key.id not in resigned.unacknowledged:
            continue
        if core.outbox.ready_at(slot) <= now:
            request = EndQuorumEpochRequest(core.epoch, core.me.id, resigned.successors, core.own.endpoints)
            core.outbox.send(core.effects, slot, Destination(node.key.id, node.address), request)
        deadline = min(deadline, core.outbox.ready_at(slot))
    return deadline


def handle_end_response(
    core: Core, resigned: Resigned, node_id: int, response: QuorumEpochResponse, now: float
) -> None:
    if core.learn(response.epoch, response.leader_id, response.leader_address, now):
        return
    if response.error is ErrorCode.NONE:
        resigned.unacknowledged.discard(node_id)
    else:
        core.outbox.failed((END, node_id), now)


def handle_end(core: Core, request: EndQuorumEpochRequest, answer: AnswerTo, now: float) -> None:
    error = _claim_error(core, request.epoch, request.leader_id)
    if error is ErrorCode.NONE:
        if (request.epoch, request.leader_id) != (core.epoch, core.election.leader_id):
            discovery.confirm(core, request.leader_id, now)
        elif isinstance(core.state, Follower):
            following.end_announced(core, core.state, request.preferred_candidates, now)
    core.answer(answer, core.quorum_response(error, request.epoch))
