"""State objects that find themselves broken end the history, whichever part of a node they belong to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from strandline.histories.judges.invariants import TURNS_PER_SWEEP, NodeInvariants, QuorumInvariants, ReplicaInvariants
from strandline.histories.member import ClusterMember
from strandline.histories.quorum_observation import ObservedMember, QuorumObservation, Violation
from strandline.histories.transcript import Transcript

from .quorum.stage import Stage as QuorumStage
from .replication.stage import broken, stage


class Broken:
    def check_invariants(self) -> None:
        raise AssertionError("the end lies before the start")


def test_a_log_that_is_not_as_it_should_be() -> None:
    story = stage(ReplicaInvariants)
    story.append(1, "a")
    story.partition(2).log.check_invariants = Broken().check_invariants  # type: ignore[method-assign]
    with broken(ReplicaInvariants):
        story.append(2, "a")


def test_a_quorum_that_is_not() -> None:
    story = QuorumStage(QuorumInvariants())
    story.see(1)
    story.observed.members[1] = cast(ObservedMember, Broken())
    with pytest.raises(Violation, match="before the start"):
        story.see(1, epoch=2)


def test_all_of_a_node_is_checked_now_and_then() -> None:
    observed = QuorumObservation([], Transcript(lambda: 0.0))
    invariants = NodeInvariants()
    member = cast(ClusterMember, SimpleNamespace(id=1, observed=Broken()))
    for _ in range(TURNS_PER_SWEEP - 1):
        invariants.after_turn(observed, member)
    with pytest.raises(Violation, match=r"NodeInvariants.*before the start"):
        invariants.after_turn(observed, member)
