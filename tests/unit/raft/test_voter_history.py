"""Voters along the log: the last record counts, until it is cut out."""

from __future__ import annotations

from strandline.raft.voter_history import NOT_IN_LOG, VoterHistory
from strandline.raft.voters import VoterSet
from tests.unit.raft.cluster import voter


def voters(*ids: int) -> VoterSet:
    return VoterSet(voter(node_id) for node_id in ids)


def test_the_last_record_is_in_force_and_truncation_brings_back_the_one_before() -> None:
    history = VoterHistory(voters(1), 0)
    assert (history.voters, history.voters_offset, history.voters_before) == (voters(1), NOT_IN_LOG, None)
    history.add_kraft_version(4, 1)
    history.add_voters(5, voters(1, 2))
    history.add_voters(9, voters(1, 2, 3))
    assert (history.voters, history.voters_offset, history.voters_before) == (voters(1, 2, 3), 9, voters(1, 2))
    history.truncate(10)
    assert history.voters == voters(1, 2, 3)
    history.truncate(9)
    assert (history.voters, history.kraft_version) == (voters(1, 2), 1)
    history.truncate(0)
    assert (history.voters, history.kraft_version) == (voters(1), 0)


def test_a_snapshot_replaces_it() -> None:
    history = VoterHistory(voters(1), 0, entries=[(3, voters(1, 2))])
    history.begin_at(50, voters(4, 5), 1)
    assert (history.voters, history.voters_offset, history.kraft_version) == (voters(4, 5), 49, 1)
    history.truncate(50)
    assert history.voters == voters(4, 5)


def test_a_snapshot_without_voters_leaves_the_configured_ones() -> None:
    history = VoterHistory(voters(1), 0)
    history.begin_at(50, None, 0)
    assert (history.voters, history.voters_offset) == (voters(1), NOT_IN_LOG)
