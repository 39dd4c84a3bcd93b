# mypy: disable-error-code="arg-type"

from __future__ import annotations

from strandline.histories.compaction.replica_progress import ReplicaProgress

KEY = (b"topic", 0)


def test_a_replica_is_late_if_the_tombstone_could_be_gone_before_it_came() -> None:
    progress = ReplicaProgress()
    progress.note(1, KEY, 10, 1.0)
    progress.note(2, KEY, 5, 1.0)
    progress.note(2, KEY, 10, 4.0)
    assert not progress.was_late(1, KEY, 9, 3.0)
    assert progress.was_late(2, KEY, 9, 3.0)
    assert not progress.was_late(2, KEY, 9, 3.1)
    assert not progress.was_late(2, KEY, 4, 3.0), "that one it had at once"
    assert progress.was_late(3, KEY, 9, 3.0), "it never had it"


def test_what_was_cut_counts_from_when_it_came_again() -> None:
    progress = ReplicaProgress()
    for node_id in (1, 2):
        progress.note(node_id, KEY, 10, 1.0)
    progress.note(2, KEY, 6, 5.0)
    progress.note(2, KEY, 12, 9.0)
    assert progress.was_late(2, KEY, 7, 8.0)
    assert not progress.was_late(2, KEY, 5, 8.0)
