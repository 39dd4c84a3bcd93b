"""Changing the voters: add, remove, update (KIP-853).

Always true (D13): one change at a time, by a leader whose high watermark is known, at kraft.version 1, on top of voters that
are committed. The new voters are in force as soon as their record is in the log, and it is their majority that commits it.
A leader that is not among them leads until then, without counting itself, and resigns.
"""

from __future__ import annotations

from math import inf

from strandline.errors import ErrorCode
from strandline.raft import control_records, tracking
from strandline.raft.core import Core
from strandline.raft.effects import AppendControl
from strandline.raft.events import Destination
from strandline.raft.messages import (
    NO_NODE,
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from strandline.raft.outbox import Slot
from strandline.raft.states import AnswerTo, Leader, VoterChange
from strandline.raft.voters import VoterNode, VoterSet

API_VERSIONS: Slot = ("api versions", NO_NODE)

Refusal = tuple[ErrorCode, str]


def handle(
    core: Core,
    request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest,
    answer: AnswerTo,
    now: float,
) -> None:
    timeout_s = core.timings.request_timeout_s
    if isinstance(request, AddVoterRequest) and request.timeout_s > 0:
        timeout_s = request.timeout_s
    change = VoterChange(request, answer, now + timeout_s)
    leader = core.state
    if isinstance(request, UpdateVoterRequest) and request.epoch != core.epoch:
        older = request.epoch < core.epoch
        core.answer_change(change, ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        return
    if not isinstance(leader, Leader):
        core.answer_change(change, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node is not the leader of the quorum")
        return
    refusal = _malformed(request) or _not_now(core, leader)
    if refusal is None:
        match request:
            case AddVoterRequest():
                refusal = _begin_add(core, leader, change, request)
            case RemoveVoterRequest():
                refusal = _remove(core, leader, change, request)
            case UpdateVoterRequest():
                node = VoterNode(request.voter, dict(request.endpoints), request.kraft_versions)
                _ask_versions(core, leader, change, node)
    if refusal is not None:
        core.answer_change(change, *refusal)


def _malformed(request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest) -> Refusal | None:
    if request.voter.id < 0 or not any(request.voter.directory_id):
        return ErrorCode.INVALID_REQUEST, "The request names no voter by id and directory"
    if isinstance(request, RemoveVoterRequest):
        return None
    if not request.endpoints:
        return ErrorCode.INVALID_REQUEST, "The request names no endpoint of the voter"
    if isinstance(request, UpdateVoterRequest) and (not request.kraft_versions or request.kraft_versions.start < 0):
        return ErrorCode.INVALID_REQUEST, "The request names no versions that the voter supports"
    return None


def _not_now(core: Core, leader: Leader) -> Refusal | None:
    if leader.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "The leader has not finished the voter change before"
    if leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, "The leader has committed nothing of its epoch yet"
    if core.history.kraft_version < 1:
        message = f"Voters cannot be changed while kraft.version is {core.history.kraft_version}"
        return ErrorCode.UNSUPPORTED_VERSION, message
    if core.history.voters_offset >= leader.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "The last change of the voters is not committed yet"
    return None


def _begin_add(core: Core, leader: Leader, change: VoterChange, request: AddVoterRequest) -> Refusal | None:
    if core.voters.get(request.voter.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, f"Node {request.voter.id} is a voter already"
    _ask_versions(core, leader, change, VoterNode(request.voter, dict(request.endpoints)))
    return None


def _ask_versions(core: Core, leader: Leader, change: VoterChange, node: VoterNode) -> None:
    """Ask the node which kraft.versions it knows. An answer also shows that its endpoint is right."""
    leader.change = change
    change.voter = node
    core.outbox.free(API_VERSIONS)
    core.outbox.send(core.effects, API_VERSIONS, Destination(node.key.id, node.address), ApiVersionsRequest())


def _remove(core: Core, leader: Leader, change: VoterChange, request: RemoveVoterRequest) -> Refusal | None:
    node = core.voters.get(request.voter.id)
    if node is None or node.key != request.voter:
        return ErrorCode.VOTER_NOT_FOUND, f"Node {request.voter.id} with that directory is no voter"
    if len(core.voters) == 1:
        return ErrorCode.VOTER_NOT_FOUND, "The last voter cannot be removed"
    leader.change = change
    _append(core, leader, change, VoterSet(other for other in core.voters if other is not node))
    return None


def _append(core: Core, leader: Leader, change: VoterChange, voters: VoterSet) -> None:
    change.offset = core.log.end_offset
    core.effects.append(AppendControl(core.epoch, (control_records.voters_record(voters),)))
    core.history.add_voters(change.offset, voters)
    tracking.sync_voters(core, leader)


def handle_api_versions(core: Core, leader: Leader, response: ApiVersionsResponse | None, now: float) -> None:
    """The answer of a voter to be (None if there was none): on with the change, or an end to it."""
    change = leader.change
    if change is None or change.voter is None or change.offset is not None:
        return
    refusal = _unfit(core, leader, change, change.voter, response, now)
    if refusal is not None:
        leader.change = None
        core.answer_change(change, *refusal)
        return
    assert response is not None
    node = change.voter._replace(kraft_versions=response.kraft_versions)
    _append(core, leader, change, VoterSet([*(v for v in core.voters if v.key.id != node.key.id), node]))
    if isinstance(change.request, UpdateVoterRequest):
        tracking.heard_from(core, leader, node.key, now)
        core.answer_change(change, ErrorCode.NONE)
    elif isinstance(change.request, AddVoterRequest) and not change.request.ack_when_committed:
        core.answer_change(change, ErrorCode.NONE)


def _unfit(
    core: Core, leader: Leader, change: VoterChange, node: VoterNode, response: ApiVersionsResponse | None, now: float
) -> Refusal | None:
    if response is None or response.error is not ErrorCode.NONE:
        return ErrorCode.REQUEST_TIMED_OUT, f"Node {node.key.id} does not answer at {node.address}"
    if core.history.kraft_version not in response.kraft_versions:
        return ErrorCode.INVALID_REQUEST, f"Node {node.key.id} does not know the kraft.version of this cluster"
    if isinstance(change.request, UpdateVoterRequest):
        if change.request.kraft_versions != response.kraft_versions:
            return ErrorCode.INVALID_REQUEST, "The voter's endpoint supports other versions than the request says"
        if not core.voters.is_voter(node.key):
            return ErrorCode.VOTER_NOT_FOUND, f"Node {node.key.id} is no voter"
        return None
    replica = leader.observers.get(node.key)
    if replica is None or now - (replica.last_caught_up_at or -inf) > core.timings.check_quorum_s:
        return ErrorCode.REQUEST_TIMED_OUT, f"Node {node.key.id} has not caught up with the leader"
    return None


def committed(core: Core, leader: Leader, high_watermark: int) -> None:
    """The high watermark moved: the change may be committed."""
    change = leader.change
    if change is not None and change.offset is not None and high_watermark > change.offset:
        leader.change = None
        core.answer_change(change, ErrorCode.NONE)


def cancel(leader: Leader, answer: AnswerTo) -> None:
    """The sender of that request is gone: if it was the voter change, it goes on without an answer."""
    change = leader.change
    if change is not None and change.answer is answer:
        change.answer = None


def is_removed(core: Core, leader: Leader) -> bool:
    """Whether the voters are committed and the leader is none of them."""
    high_watermark = leader.high_watermark
    return not core.is_voter and high_watermark is not None and core.history.voters_offset < high_watermark


def poll(core: Core, leader: Leader, now: float) -> float:
    """A change that takes too long is given up; if its record is in the log, it may still be committed."""
    if leader.change is None:
        return inf
    if now >= leader.change.deadline:
        core.answer_change(leader.change, ErrorCode.REQUEST_TIMED_OUT, "The voter change took too long")
        leader.change = None
        core.outbox.free(API_VERSIONS)
        return inf
    return leader.change.deadline


def check_invariants(core: Core, leader: Leader) -> None:
    change = leader.change
    if change is None:
        return
    assert leader.high_watermark is not None, "the voters change before anything is committed in this epoch"
    assert core.history.kraft_version >= 1, f"the voters change at kraft.version {core.history.kraft_version}"
    if change.offset is not None:
        in_force = core.history.voters_offset
        assert change.offset == in_force, (
            f"the change at {change.offset} is under way, the voters are those of {in_force}"
        )
        assert leader.high_watermark <= change.offset, (
            f"the change at {change.offset} is committed, and still under way"
        )
