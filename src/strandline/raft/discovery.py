"""Finding the leader: whoever does not know it, or has lost it, asks the others with a Fetch that does not wait.

Always true: one question at a time, to a voter or bootstrap server drawn at random; each that brings nothing new makes the
next one wait longer. The answer teaches the epoch and its leader; records in it are left alone.
"""

from __future__ import annotations

from math import inf

from strandline.raft.core import Core
from strandline.raft.events import Destination
from strandline.raft.messages import NOBODY, FetchResponse
from strandline.raft.outbox import Slot

DISCOVER = "discover"
SLOT: Slot = (DISCOVER, NOBODY)


def poll(core: Core, now: float) -> float:
    if (ready_at := core.outbox.ready_at(SLOT)) > now:
        return ready_at
    if core.is_on_device and (destinations := _destinations(core)):
        # Whom it asks may turn out to lead, and counts this Fetch as any other.
        core.outbox.send(core.effects, SLOT, core.randomness.choice(destinations), core.fetch_request(max_wait_s=0.0))
    return inf  # an event tells when there is an answer, or when the log is on the device


def _destinations(core: Core) -> list[Destination]:
    voters = [Destination(node.key.id, node.address) for node in core.other_voters()]
    known = {voter.address for voter in voters} | set(core.own.endpoints.values())
    return voters + [Destination(NOBODY, address) for address in core.bootstrap if address not in known]


def handle_response(core: Core, response: FetchResponse, now: float) -> None:
    if not core.learn(response.epoch, response.leader_id, response.leader_address, now):
        core.outbox.failed(SLOT, now)
