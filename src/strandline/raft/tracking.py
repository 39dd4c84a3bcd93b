"""The replicas that the leader tracks: the voters in force, and the observers that fetch.

Always true: each voter but the leader itself has its state; what was known of a replica stays known when it becomes a voter
or stops being one; only a voter under its own key counts for the quorum (D12).
"""

from __future__ import annotations

from math import inf
from typing import Final

from strandline.raft.core import Core
from strandline.raft.messages import ReplicaKey
from strandline.raft.replicas import ReplicaState
from strandline.raft.states import Leader

OBSERVER_SESSION_S: Final = 300.0
"""An observer that has not fetched for so long is forgotten."""
OBSERVERS_MAX: Final = 10_000
"""Any client can claim to be an observer; more than these are served, but not remembered."""


def replica(core: Core, leader: Leader, key: ReplicaKey, now: float) -> ReplicaState | None:
    """What is known of this replica; it is an observer if it is no voter. None for one that is not tracked."""
    if key.id < 0:
        return None
    if core.voters.is_voter(key):
        return leader.voters[key.id]
    if key not in leader.observers:
        forget_silent_observers(leader, now)
        if len(leader.observers) >= OBSERVERS_MAX:
            return None
        leader.observers[key] = ReplicaState(key)
    return leader.observers[key]


def forget_silent_observers(leader: Leader, now: float) -> None:
    for key, state in list(leader.observers.items()):
        if now - (state.last_fetch_at or -inf) >= OBSERVER_SESSION_S:
            del leader.observers[key]


def sync_voters(core: Core, leader: Leader) -> None:
    """The voters in force changed: observers become voters, voters observers."""
    before = leader.voters
    leader.voters = {}
    for node in core.other_voters():
        known = before.get(node.key.id)
        if known is not None and any(known.key.directory_id) and known.key != node.key:
            known = None
        if known is None:
            known = leader.observers.pop(node.key, None) or ReplicaState(node.key)
        known.key = node.key
        leader.voters[node.key.id] = known
    for state in before.values():
        if leader.voters.get(state.key.id) is not state:
            leader.observers[state.key] = state


def heard_from(core: Core, leader: Leader, key: ReplicaKey, now: float) -> None:
    """Check quorum (D5): each time that a majority has fetched, the leader may go on for as long again."""
    if core.voters.is_voter(key):
        leader.fetched.add(key.id)
        if len(leader.fetched & leader.voters.keys()) >= others_needed(core):
            leader.fetched.clear()
            leader.check_quorum_at = now + core.timings.check_quorum_s


def others_needed(core: Core) -> int:
    """So many others make a majority with the leader, if it is a voter, or without it."""
    return core.voters.majority - core.is_voter


def check_invariants(core: Core, leader: Leader) -> None:
    others = {node.key.id: node.key for node in core.other_voters()}
    tracked = {node_id: state.key for node_id, state in leader.voters.items()}
    assert tracked == others, f"the other voters are {others}, tracked are {tracked}"
    for state in leader.voters.values():
        assert state.key not in leader.observers, f"{state.key} is a voter and an observer"
        assert state.end_offset is None or state.end_offset <= core.log.end_offset, (
            f"node {state.key.id} has {state.end_offset}, its leader {core.log.end_offset}"
        )
