"""Finding the leader: a node that does not know it, or has lost it, asks the others with a Fetch that does not wait.

Always true: one question at a time, to a voter or bootstrap server drawn at random, and one to a voter that is said to lead; each
that brings nothing new makes the next one wait longer. The answer teaches the epoch and its leader; records in it are left alone.
"""

from __future__ import annotations

from math import inf

from strandline.errors import ErrorCode
from strandline.raft.core import Core
from strandline.raft.events import Destination
from strandline.raft.messages import NO_NODE, RaftFetchResponse
from strandline.raft.outbox import Slot
from strandline.raft.states import Prospective

DISCOVER = "discover"
SLOT: Slot = (DISCOVER, NO_NODE)
CONFIRM: Slot = ("confirm", NO_NODE)


def poll(core: Core, now: float) -> float:
    if (ready_at := core.outbox.ready_at(SLOT)) > now:
        return ready_at
    if core.is_on_device and (destinations := _destinations(core)):
        # Whom it asks may turn out to lead, and counts this Fetch as any other.
        core.outbox.send(core.effects, SLOT, core.randomness.choice(destinations), core.fetch_request(max_wait_s=0.0))
    return inf  # the answer is an event, and so is the end of the flush


def confirm(core: Core, leader_id: int, now: float) -> None:
    """Ask a voter that is said to lead, where the voters' record says it is: any client can send a request, but only that
    voter answers there (SEC-Z16)."""
    node = core.voters.get(leader_id)
    if node is not None and node.key.id != core.me.id and core.is_on_device and core.outbox.ready_at(CONFIRM) <= now:
        core.outbox.send(
            core.effects, CONFIRM, Destination(leader_id, node.address), core.fetch_request(max_wait_s=0.0)
        )


def _destinations(core: Core) -> list[Destination]:
    # A node has one connection for Fetches to each other: it stays at the leader's reported address while that is asked.
    besides = core.election.leader_id if core.asks_reported_address else NO_NODE
    voters = [Destination(node.key.id, node.address) for node in core.other_voters() if node.key.id != besides]
    known = {voter.address for voter in voters} | set(core.own.endpoints.values())
    return voters + [Destination(NO_NODE, address) for address in core.bootstrap if address not in known]


def handle_response(core: Core, slot: Slot, asked: int, response: RaftFetchResponse, now: float) -> None:
    if core.learn(response.epoch, response.leader_id, response.leader_address, now):
        return
    leads = response.error is ErrorCode.NONE and (response.epoch, response.leader_id) == (core.epoch, asked)
    if leads and isinstance(core.state, Prospective) and core.leader_address is not None:
        # The leader that it believed to be gone has answered.
        core.leader_is_alive()
        core.answered_at(core.leader_address)
        core.to_follower(core.epoch, asked, core.leader_address, now)
    else:
        core.outbox.failed(slot, now)
