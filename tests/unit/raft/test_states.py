"""The table of transitions says what the protocol needs it to."""

from __future__ import annotations

from strandline.raft.states import TRANSITIONS, Candidate, Follower, Leader, Prospective, Resigned, State, Unattached


def sources(target: type[State]) -> set[type[State]]:
    return {source for source, targets in TRANSITIONS.items() if target in targets}


def test_only_a_candidate_comes_to_lead_and_only_after_a_pre_vote() -> None:
    assert sources(Leader) == {Candidate}
    assert sources(Candidate) == {Prospective}


def test_a_newer_epoch_can_reach_every_state() -> None:
    assert sources(Unattached) == sources(Follower) == set(TRANSITIONS)


def test_a_leader_leads_on_or_leaves_its_epoch_for_good() -> None:
    assert set(TRANSITIONS[Leader]) == {Resigned, Follower, Unattached}
