"""Elections: asking for votes, granting them, and what follows.

Always true: a vote is given once in an epoch, only to a log at least as new as one's own, and is saved before it is said
(D1, D2); a pre-vote costs nothing and binds no voter, but a node that hears its leader grants none (D4), nor does it leave its
leader's epoch for a Vote (SEC-Z16): a candidate that a majority has elected shows itself by the answers of that majority.
Configured voters elect one of themselves. Where voters are records of the log, one that is behind may not know the newest yet,
and votes for a candidate that it does not know; else no candidate might be electable.
"""

from __future__ import annotations

from math import inf

from strandline.errors import ErrorCode
from strandline.raft import discovery, following, leading
from strandline.raft.core import Core
from strandline.raft.effects import SendResponse
from strandline.raft.events import Destination
from strandline.raft.messages import NO_NODE, ReplicaKey, VoteRequest, VoteResponse
from strandline.raft.states import AnswerTo, Candidate, Follower, Leader, Prospective, Resigned, Unattached

VOTE = "vote"


# Answering Vote


def handle_vote(core: Core, request: VoteRequest, answer: AnswerTo, now: float) -> None:
    error, granted = _vote(core, request, now)
    response = VoteResponse(error, core.epoch, core.leader_id, granted, core.leader_address)
    if core.answers_in_epoch_of(request.epoch, error):
        response = VoteResponse(error, request.epoch, NO_NODE)
    core.effects.append(SendResponse(answer, response))


def _vote(core: Core, request: VoteRequest, now: float) -> tuple[ErrorCode, bool]:
    last_epoch, end_offset = request.last_epoch, request.last_epoch_end_offset
    # A candidate has begun its epoch and cannot have records of it; a node that asks for a pre-vote may (D3).
    if last_epoch < 0 or end_offset < 0 or last_epoch > request.epoch - (not request.pre_vote):
        return ErrorCode.INVALID_REQUEST, False
    if request.epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH, False
    if request.candidate.id < 0 or request.candidate.id == core.me.id or not core.is_believable(request.epoch):
        return ErrorCode.INVALID_REQUEST, False
    may_be_voter = core.is_known_voter(request.candidate) or core.history.kraft_version > 0
    if request.epoch > core.epoch and may_be_voter and not core.is_in_touch:
        core.learn(request.epoch, NO_NODE, None, now)
    if not is_meant(core, request.voter):
        return ErrorCode.INVALID_VOTER_KEY, False
    if not may_be_voter:
        return ErrorCode.INCONSISTENT_VOTER_SET, False
    if core.is_in_touch:
        return ErrorCode.NONE, False
    is_up_to_date = (last_epoch, end_offset) >= (core.log.last_epoch, core.log.end_offset)
    if not is_up_to_date or not core.is_controller:
        return ErrorCode.NONE, False
    if request.pre_vote:
        return ErrorCode.NONE, _grant_pre_vote(core, request, now)
    return ErrorCode.NONE, _grant_vote(core, request.candidate, now)


def is_meant(core: Core, voter: ReplicaKey) -> bool:
    """Whether a request names this replica; one that names no id or no directory means whom it reaches."""
    return voter.id in (NO_NODE, core.me.id) and (
        not any(voter.directory_id) or voter.directory_id == core.me.directory_id
    )


def _grant_vote(core: Core, candidate: ReplicaKey, now: float) -> bool:
    if not isinstance(core.state, Unattached | Prospective) or core.election.leader_id != NO_NODE:
        return False
    voted = core.election.voted
    if voted is not None:
        # Asked again by the one that has it already. Its log was compared again: it may have lost what it had not flushed.
        return voted.id == candidate.id and (not any(voted.directory_id) or voted == candidate)
    core.to_unattached(core.epoch, now + core.election_timeout(), candidate)
    return True


def _grant_pre_vote(core: Core, request: VoteRequest, now: float) -> bool:
    """Grant it, and wait a round before asking for votes too: else the survivors of three would split their votes. A node that is
    in touch with its leader, or leads, has refused it already (D4)."""
    next_round = now + core.timings.disconnect_grace_s * (1 + core.randomness.random())
    match core.state:
        case Follower() as follower:
            following.postpone_campaign(follower, next_round)
        case Unattached() as unattached:
            unattached.campaign_at = max(unattached.campaign_at, next_round)
        case Prospective():
            own = (core.log.last_epoch, core.log.end_offset, core.me.id)
            if (request.last_epoch, request.last_epoch_end_offset, request.candidate.id) > own:
                _step_back(core, next_round, now)
        case Candidate() | Resigned() | Leader():
            pass
    return True


def candidate_disconnected(core: Core, unattached: Unattached, now: float) -> None:
    """The candidate that has this node's vote is gone, perhaps before it could win: the next election is sooner."""
    next_round = now + core.timings.disconnect_grace_s * (1 + core.randomness.random())
    unattached.campaign_at = min(unattached.campaign_at, next_round)


# Asking for votes


def poll_unattached(core: Core, unattached: Unattached, now: float) -> float:
    if not core.may_campaign:
        return discovery.poll(core, now)
    if now >= unattached.campaign_at:
        core.to_prospective(now)
        return now
    return min(unattached.campaign_at, discovery.poll(core, now))


def poll_prospective(core: Core, prospective: Prospective, now: float) -> float:
    if not core.may_campaign:
        _step_back(core, now + core.election_timeout(), now)
        return now
    if core.has_majority(prospective.granted):
        core.to_candidate(now)
        return now
    if now >= prospective.ends_at or _is_lost(core, prospective.rejected):
        core.round_lost()
        _step_back(core, now + core.round_backoff(), now)
        return now
    return min(prospective.ends_at, _ask(core, prospective, now, pre_vote=True))


def poll_candidate(core: Core, candidate: Candidate, now: float) -> float:
    if core.has_majority(candidate.granted):
        leading.begin(core, candidate.granted, now)
        return now
    if now >= candidate.ends_at:
        if not core.may_campaign:
            return inf
        core.to_prospective(now)
        return now
    return min(candidate.ends_at, _ask(core, candidate, now, pre_vote=False))


def _is_lost(core: Core, rejected: set[int]) -> bool:
    """Whether so many voters refused that no majority is left."""
    return sum(node_id in rejected for node_id in core.voters.ids) > len(core.voters) - core.voters.majority


def _step_back(core: Core, campaign_at: float, now: float) -> None:
    """Out of a pre-vote: back to the leader in mind, if there is one, until it is time to ask again."""
    if core.election.leader_id != NO_NODE and core.leader_address is not None:
        core.to_follower(core.epoch, core.election.leader_id, core.leader_address, now)
        if core.leader_lost and isinstance(core.state, Follower):
            following.campaign_again(core.state, campaign_at)
    else:
        core.to_unattached(core.epoch, campaign_at)


def _ask(core: Core, nominee: Prospective | Candidate, now: float, *, pre_vote: bool) -> float:
    deadline = inf
    for node in core.other_voters():
        if node.key.id in nominee.granted or node.key.id in nominee.rejected:
            continue
        slot = (VOTE, node.key.id)
        if core.outbox.ready_at(slot) <= now:
            request = VoteRequest(
                node.key, core.epoch, core.me, core.log.last_epoch, core.log.end_offset, pre_vote=pre_vote
            )
            core.outbox.send(core.effects, slot, Destination(node.key.id, node.address), request)
        deadline = min(deadline, core.outbox.ready_at(slot))
    return deadline


def handle_vote_response(core: Core, voter_id: int, request: VoteRequest, response: VoteResponse, now: float) -> None:
    """`request` was the one under way, so the state is still the one in which it was sent."""
    nominee = core.state
    assert isinstance(nominee, Prospective | Candidate)
    if core.learn(response.epoch, response.leader_id, response.leader_address, now):
        return
    if response.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(nominee, Prospective):
        core.to_candidate(now)  # that voter does not know the pre-vote: go on without it
    elif response.error is not ErrorCode.NONE or response.epoch < core.epoch:
        core.outbox.failed((VOTE, voter_id), now)
    elif response.granted:
        nominee.granted.add(voter_id)
    else:
        nominee.rejected.add(voter_id)
        _rejected(core, nominee, voter_id, response, now)


def _rejected(core: Core, nominee: Prospective | Candidate, voter_id: int, response: VoteResponse, now: float) -> None:
    if isinstance(nominee, Candidate):
        if _is_lost(core, nominee.rejected):
            core.round_lost()
            nominee.ends_at = min(nominee.ends_at, now + core.round_backoff())
    elif response.leader_id == core.election.leader_id != NO_NODE:
        # That voter hears the leader, or is the leader: the leader is alive.
        is_leader = response.leader_id == voter_id
        if is_leader:
            core.leader_is_alive()
        core.round_lost()
        _step_back(core, now + core.round_backoff(), now)
        if is_leader and isinstance(core.state, Follower):
            following.leader_answered(core.state)
