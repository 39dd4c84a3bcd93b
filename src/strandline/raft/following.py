"""Following: fetch, append, flush, fetch again; truncate where the leader's log parts from one's own.

Always true: the next Fetch says only what is on the device (D8); what is committed is never cut (D10); a response counts
only in the epoch in which its request was sent, from the leader of that epoch.
"""

from __future__ import annotations

from math import inf

from strandline.errors import ErrorCode
from strandline.raft import control_records, discovery
from strandline.raft.core import Core
from strandline.raft.effects import AppendFetched, StoreChunk
from strandline.raft.events import Destination, SnapshotLoaded
from strandline.raft.messages import (
    NO_NODE,
    Address,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    ReplicaKey,
    UpdateVoterRequest,
)
from strandline.raft.outbox import Slot
from strandline.raft.states import FetchingSnapshot, Follower
from strandline.records.errors import CorruptRecord

FETCH: Slot = ("fetch", NO_NODE)
PROBE: Slot = ("probe", NO_NODE)
UPDATE_VOTER: Slot = ("update voter", NO_NODE)


def poll(core: Core, follower: Follower, now: float) -> float:
    deadline = inf
    if core.may_campaign:
        deadline = min(follower.fetch_deadline, follower.campaign_at)
        if now >= deadline:
            if now >= follower.fetch_deadline and core.outbox.ready_at(FETCH) == inf:
                core.fetch_failed()
            core.to_prospective(now)
            return now
    elif not core.is_voter:
        if now >= follower.fetch_deadline:
            core.leader_is_gone()
            follower.fetch_deadline = now + core.timings.fetch_timeout_s
        deadline = follower.fetch_deadline
    if core.is_truncating:
        return now  # the log is cut when this step's effects are carried out: look again then
    deadline = min(deadline, _fetch(core, follower, now), _probe(core, now), _update_voter(core, follower, now))
    if core.leader_lost:
        deadline = min(deadline, discovery.poll(core, now))
    return deadline


def _fetch(core: Core, follower: Follower, now: float) -> float:
    is_appended = core.log.end_offset >= follower.expected_end_offset
    if core.installing is not None or not is_appended or not core.is_on_device:
        return inf  # its end is an event
    if (ready_at := core.outbox.ready_at(FETCH)) > now:
        return ready_at
    request: RaftFetchRequest | FetchSnapshotRequest
    if follower.snapshot is None:
        # From a leader that may be gone a sign of life is needed, not records.
        request = core.fetch_request(0.0 if core.leader_lost else core.timings.fetch_wait_s)
    else:
        snapshot_id, position = follower.snapshot
        request = FetchSnapshotRequest(
            core.me, core.epoch, snapshot_id, position, core.timings.fetch_snapshot_max_bytes
        )
    core.outbox.send(core.effects, FETCH, _leader(core), request)
    follower.has_asked_since = True
    return inf


def _leader(core: Core) -> Destination:
    address = core.reported_address if core.asks_reported_address else core.leader_address
    assert address is not None, "a follower knows where its leader is"
    return Destination(core.election.leader_id, address)


def _probe(core: Core, now: float) -> float:
    """While the leader is asked at a reported address, ask at the recorded one too, by a connection of its own: if it answers
    there, that is where it is (SEC-Z16)."""
    if not core.asks_reported_address or core.leader_address is None or not core.is_on_device:
        return inf
    if (ready_at := core.outbox.ready_at(PROBE)) > now:
        return ready_at
    core.outbox.send(core.effects, PROBE, Destination(NO_NODE, core.leader_address), core.fetch_request(max_wait_s=0.0))
    return inf


def handle_probe_response(core: Core, response: RaftFetchResponse, now: float) -> None:
    if core.learn(response.epoch, response.leader_id, response.leader_address, now):
        return
    leads = response.error is ErrorCode.NONE and (response.epoch, response.leader_id) == (core.epoch, core.leader_id)
    if leads and core.asks_reported_address and core.leader_address is not None:
        core.answered_at(core.leader_address)
        core.outbox.free(FETCH)
    else:
        core.outbox.failed(PROBE, now)


def disconnected(core: Core, now: float) -> None:
    """A connection with the leader closed. The Fetch that is under way, or comes next, knows better: if the leader is gone,
    it fails at once; if only a connection is, there should be no election, or each connection that comes and goes costs an epoch.
    But while a snapshot is put in place there is no Fetch."""
    if core.installing is not None:
        suspect(core, now)


def suspect(core: Core, now: float) -> None:
    """A Fetch failed, or the leader said that it leads no more: the leader is believed to be gone (docs/decisions/0005)."""
    follower = core.state
    if isinstance(follower, Follower):
        if not core.leader_lost or follower.campaign_at == inf:
            delay = core.timings.disconnect_grace_s * core.randomness.random()
            follower.campaign_at = now + (core.round_backoff() if core.failed_rounds else delay)
        core.leader_is_gone()
        if follower.successors is not None:
            leader_resigned(core, follower, now)


def end_announced(core: Core, follower: Follower, successors: tuple[ReplicaKey, ...], now: float) -> None:
    """A request says in the leader's name that it leads no more: believed if the leader is believed to be gone, else it counts
    once the answer to a later Fetch, or its failure, bears it out (SEC-Z16)."""
    if follower.successors is None:
        follower.has_asked_since = False
    follower.successors = successors
    core.outbox.succeeded(FETCH)  # the next Fetch does not wait: its answer shows whether that is true
    if core.leader_lost:
        leader_resigned(core, follower, now)


def postpone_campaign(follower: Follower, until: float) -> None:
    """Another node has this one's pre-vote, and the time until then to win."""
    follower.fetch_deadline = max(follower.fetch_deadline, until)
    if follower.campaign_at < inf:
        follower.campaign_at = max(follower.campaign_at, until)


def campaign_again(follower: Follower, at: float) -> None:
    """A pre-vote was lost, and the leader is still believed to be gone: the next one begins then."""
    follower.campaign_at = at


def leader_answered(follower: Follower) -> None:
    """The leader is alive, whatever it answered: no reason to grant a pre-vote (D4)."""
    follower.has_fetched = True


def leader_resigned(core: Core, follower: Follower, now: float) -> None:
    """The leader has said that it leads no more, and does not: the voters ask to succeed it in the order that it gave."""
    follower.has_resigned = True
    follower.campaign_at = min(follower.campaign_at, now + handover_delay(core, follower.successors or ()))


def unanswered(core: Core, now: float) -> None:
    """A Fetch to the leader failed. After the first failure it is sent again at once: perhaps only a connection is gone."""
    if core.leader_lost:
        core.outbox.failed(FETCH, now)
    core.fetch_failed()
    suspect(core, now)


def handle_fetch_response(
    core: Core, follower: Follower, asked: Address, request: RaftFetchRequest, response: RaftFetchResponse, now: float
) -> None:
    if _is_refused(core, response.error, response.epoch, response.leader_id, response.leader_address, now):
        return
    if response.diverging_epoch is not None:
        if not _truncate(core, response.diverging_epoch):
            return
    elif response.snapshot_id is not None:
        if not _begin_snapshot(core, follower, response.snapshot_id, now):
            return
    else:
        try:
            _append(core, follower, request, response)
        except CorruptRecord:
            core.outbox.failed(FETCH, now)
            return
    _heard(core, follower, asked, now)


def _is_refused(core: Core, error: ErrorCode, epoch: int, leader_id: int, address: Address | None, now: float) -> bool:
    if core.learn(epoch, leader_id, address, now):
        return True
    if error is ErrorCode.NONE and epoch == core.epoch:
        return False
    if error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        return False
    core.outbox.failed(FETCH, now)
    core.fetch_failed()  # another node may answer there by now
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        suspect(core, now)
    return True


def _heard(core: Core, follower: Follower, asked: Address, now: float) -> None:
    """The leader has answered."""
    core.outbox.succeeded(FETCH)
    core.answered_at(asked)
    if follower.has_resigned:
        return
    if follower.has_asked_since:
        follower.successors = None
    core.leader_is_alive()
    core.rounds_are_over()
    leader_answered(follower)
    follower.fetch_deadline = now + core.timings.fetch_timeout_s
    follower.campaign_at = inf


def _append(core: Core, follower: Follower, request: RaftFetchRequest, response: RaftFetchResponse) -> None:
    end_offset = core.log.end_offset
    if response.records:
        fetched = control_records.check(
            response.records, offset=end_offset, last_epoch=core.log.last_epoch, leader_epoch=request.epoch
        )
        core.effects.append(AppendFetched(fetched.records))
        follower.expected_end_offset = end_offset = fetched.end_offset
        for offset, kraft_version in fetched.kraft_versions:
            core.history.add_kraft_version(offset, kraft_version)
        for offset, voters in fetched.voters:
            core.history.add_voters(offset, voters)
    if response.high_watermark >= 0:
        core.commit(min(response.high_watermark, end_offset))


def _truncate(core: Core, diverging: OffsetAndEpoch) -> bool:
    """Cut the log where it may agree with the leader's. Whether that could be done."""
    own = core.log.end_of_epoch(diverging.epoch)
    end_offset = own.offset if own.epoch < diverging.epoch else min(own.offset, diverging.offset)
    if own.offset < 0:
        end_offset = 0  # nothing here is as old as what the leader has
    end_offset = min(end_offset, core.log.end_offset)
    if end_offset < core.floor:
        core.fail(
            f"the leader {core.leader_id} of epoch {core.epoch} asks to cut the log at {end_offset}, but "
            f"everything below {core.floor} is committed"
        )
        return False
    core.truncate(end_offset)
    return True


# Snapshots


def _begin_snapshot(core: Core, follower: Follower, snapshot_id: OffsetAndEpoch, now: float) -> bool:
    if snapshot_id.offset < 0 or snapshot_id.epoch < 0 or snapshot_id == core.log.latest_snapshot:
        core.outbox.failed(FETCH, now)
        return False
    if snapshot_id.offset < core.floor:
        core.fail(f"the leader's snapshot ends at {snapshot_id.offset}, but everything below {core.floor} is committed")
        return False
    follower.snapshot = FetchingSnapshot(snapshot_id)
    return True


def handle_snapshot_response(
    core: Core, follower: Follower, asked: Address, response: FetchSnapshotResponse, now: float
) -> None:
    if _is_refused(core, response.error, response.epoch, response.leader_id, response.leader_address, now):
        return
    fetching = follower.snapshot
    assert fetching is not None
    position = fetching.position + len(response.chunk)
    if response.error is not ErrorCode.NONE or response.snapshot_id != fetching.snapshot_id:
        # The leader has another one by now; its answer to a Fetch says which.
        follower.snapshot = None
    elif response.position != fetching.position or not response.chunk or position > response.size:
        core.outbox.failed(FETCH, now)
        return
    else:
        core.effects.append(StoreChunk(fetching.snapshot_id, fetching.position, response.chunk))
        follower.snapshot = fetching._replace(position=position)
        if position == response.size:
            follower.snapshot = None
            core.begin_install(fetching.snapshot_id)
    _heard(core, follower, asked, now)


def snapshot_loaded(core: Core, event: SnapshotLoaded) -> None:
    core.end_install()
    core.history.begin_at(event.snapshot_id.offset, event.voters, event.kraft_version)
    follower = core.state
    if isinstance(follower, Follower):
        follower.expected_end_offset = 0
    core.commit(event.snapshot_id.offset)


def snapshot_refused(core: Core, now: float) -> None:
    """It is fetched again, but not at once: what the leader has may be rotten, and the next one may not be."""
    core.end_install()
    core.outbox.wait(FETCH, now + core.timings.fetch_timeout_s / 2)


# The voter's own entry


def _update_voter(core: Core, follower: Follower, now: float) -> float:
    """Tell the leader if the voters' record says something else of this voter than is true (KIP-853)."""
    entry = core.voters.get(core.me.id)
    needs_update = core.history.kraft_version >= 1 and core.is_voter and entry != core.own
    if not needs_update or not follower.has_fetched:
        return inf
    ready_at = max(core.outbox.ready_at(UPDATE_VOTER), follower.update_voter_at)
    if ready_at > now:
        return ready_at
    # The leader makes one change at a time; asking without a pause would keep the others' changes out.
    follower.update_voter_at = now + 2 * core.timings.fetch_timeout_s
    request = UpdateVoterRequest(core.epoch, core.me, core.own.endpoints, core.own.kraft_versions)
    core.outbox.send(core.effects, UPDATE_VOTER, _leader(core), request)
    return follower.update_voter_at


def handle_update_voter_response(core: Core, response: QuorumEpochResponse, now: float) -> None:
    core.learn(response.epoch, response.leader_id, response.leader_address, now)


# What the leader says of itself


def handover_delay(core: Core, preferred: tuple[ReplicaKey, ...]) -> float:
    """How long a voter waits before it asks to succeed a leader that resigned: the first in its list does at once."""
    grace_s = core.timings.disconnect_grace_s
    if not preferred:
        return grace_s * core.randomness.random()
    for position, key in enumerate(preferred):
        if key.id == core.me.id and (not any(key.directory_id) or key == core.me):
            return min(position, len(core.voters)) * grace_s
    return min(len(preferred), len(core.voters)) * grace_s


def check_invariants(core: Core, follower: Follower) -> None:
    known, fetching = core.committed or 0, follower.snapshot
    end_offset = max(core.log.end_offset, follower.expected_end_offset)
    assert known <= end_offset, f"{known} is committed, the log ends at {end_offset}"
    assert fetching is None or core.installing is None, f"{fetching} is fetched while {core.installing} is put in place"
