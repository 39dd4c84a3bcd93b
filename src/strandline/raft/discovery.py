"""Finding the leader: whoever does not know it, or has lost it, asks the others with a Fetch that does not wait.

Always true: one question at a time, to a voter or bootstrap server drawn at random; each that brings nothing new makes the
next one wait longer. The answer teaches the epoch and its leader; records in it are left alone.
"""

from __future__ import annotations

from strandline.raft.core import Core
from strandline.raft.events import Destination
from strandline.raft.messages import NOBODY, FetchRequest, FetchResponse
from strandline.raft.outbox import Slot

DISCOVER = "discover"
SLOT: Slot = (DISCOVER, NOBODY)


def poll(core: Core, now: float) -> float:
    if core.outbox.ready_at(SLOT) <= now and (destinations := _destinations(core)):
        request = FetchRequest(
            core.me,
            core.epoch,
            core.log.end_offset,
            core.log.last_epoch,
            max_wait_s=0.0,
            high_watermark=-1 if core.committed is None else core.committed,
            max_bytes=core.timings.fetch_max_bytes,
        )
        core.outbox.send(core.effects, SLOT, core.randomness.choice(destinations), request)
    return core.outbox.ready_at(SLOT) if core.outbox.ready_at(SLOT) > now else float("inf")


def _destinations(core: Core) -> list[Destination]:
    voters = [Destination(node.key.id, node.address) for node in core.other_voters()]
    known = {voter.address for voter in voters} | set(core.own.endpoints.values())
    return voters + [Destination(NOBODY, address) for address in core.bootstrap if address not in known]


def handle_response(core: Core, response: FetchResponse, now: float) -> None:
    if not core.learn(response.epoch, response.leader_id, response.leader_address, now):
        core.outbox.failed(SLOT, now)
