"""Leading: from the first record of an epoch to the last.

Always true: a leader appends a record of its own epoch at once, since only that can commit what came before (D6, D7); its
own log counts once it is on the device (D9); without a majority that fetches, it resigns (D5).
"""

from __future__ import annotations

from math import inf

from strandline.raft import control_records, reconfiguration, serving, tracking
from strandline.raft.core import Core
from strandline.raft.effects import AppendControl
from strandline.raft.messages import ReplicaKey
from strandline.raft.states import Leader
from strandline.raft.voter_history import NOT_IN_LOG
from strandline.raft.voters import VoterSet


def begin(core: Core, granting: set[int], now: float) -> None:
    """A majority voted: open the epoch."""
    leader = Leader(core.log.end_offset, now + core.timings.check_quorum_s)
    core.to_leader(leader)
    tracking.sync_voters(core, leader)
    records = [control_records.leader_change(core.me.id, core.voters.ids, sorted(granting))]
    is_wrong = core.is_voter and core.voters.get(core.me.id) != core.own
    if core.history.kraft_version >= 1 and (core.history.voters_offset == NOT_IN_LOG or is_wrong):
        # The voters came with the disk's format, or say something of this node that is not true any more.
        voters = VoterSet(core.own if node.key.id == core.me.id else node for node in core.voters)
        records += [
            control_records.kraft_version_record(core.history.kraft_version),
            control_records.voters_record(voters),
        ]
        core.history.add_kraft_version(leader.epoch_start_offset + 1, core.history.kraft_version)
        core.history.add_voters(leader.epoch_start_offset + 2, voters)
    core.effects.append(AppendControl(core.epoch, tuple(records)))


def poll(core: Core, leader: Leader, now: float) -> float:
    if reconfiguration.is_removed(core, leader):
        resign(core, leader, now)
        return now
    check_quorum_at = leader.check_quorum_at if tracking.others_needed(core) > 0 else inf
    if now >= check_quorum_at:
        resign(core, leader, now)
        return now
    if any(now >= parked.deadline for parked in leader.parked):
        serving.answer_parked(core, leader, now)
    return min(
        check_quorum_at,
        reconfiguration.poll(core, leader, now),
        min((parked.deadline for parked in leader.parked), default=inf),
    )


def resign(core: Core, leader: Leader, now: float) -> None:
    core.to_resigned(leader, successors(leader), now)


def successors(leader: Leader) -> tuple[ReplicaKey, ...]:
    """The other voters, by how far their logs reach."""
    return tuple(
        state.key
        for state in sorted(
            leader.voters.values(), key=lambda state: -1 if state.end_offset is None else state.end_offset, reverse=True
        )
    )
