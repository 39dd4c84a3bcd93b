"""State objects keep their own invariants: each log, partition, ISR, Raft and group that can check itself does so.

What is checked is written where the state is, as a method `check_invariants`.
An object is checked after each turn of its node that changed it, and every so many turns with all others of the node.
"""

from __future__ import annotations

from typing import Protocol

from strandline.groups.shard import GroupShard
from strandline.histories.groups.observation import GroupJudge, GroupObservation
from strandline.histories.member import ClusterMember
from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus

TURNS_PER_SWEEP = 200
"""Of all nodes together, between two checks of everything that a node has."""


class ChecksItself(Protocol):
    def check_invariants(self) -> None: ...


class QuorumInvariants(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        check(observed.members[node_id])


class ReplicaInvariants(ReplicaJudge):
    def changed(
        self,
        observed: ReplicaObservation,
        node_id: int,
        key: Key,
        before: ReplicaStatus | None,
        after: ReplicaStatus,
    ) -> None:
        replica = observed.partition(node_id, key)
        if replica is not None:
            check(replica)


class GroupInvariants(GroupJudge):
    def shard_changed(self, observed: GroupObservation, node_id: int, shard: GroupShard) -> None:
        coordinated = observed.shard(node_id)
        if coordinated is not None:
            check(coordinated)


class NodeInvariants:
    """Everything that a node has, now and then."""

    def __init__(self) -> None:
        self._turns = 0

    def after_turn(self, observed: QuorumObservation, member: ClusterMember) -> None:
        self._turns += 1
        if self._turns % TURNS_PER_SWEEP == 0 and member.observed is not None:
            try:
                check(member.observed)
            except Violation as violation:
                observed.fail(self, member.id, violation)

    def __repr__(self) -> str:
        return type(self).__name__


def check(kept: ChecksItself) -> None:
    try:
        kept.check_invariants()
    except AssertionError as error:
        raise Violation(str(error)) from error
