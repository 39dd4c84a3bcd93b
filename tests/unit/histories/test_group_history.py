from __future__ import annotations

from strandline.histories.groups.history import GroupHistory

KEY = ("t", 0)


def test_the_newest_owner_says_how_far_a_partition_was_read() -> None:
    history = GroupHistory()
    assert history.given_to(KEY) == 0
    history.note_assigned("a", 1, [KEY, ("t", 1)], 1)
    for offset in (0, 1, 2):
        assert history.note_given("a", 1, KEY, offset, b"")
    history.note_gone("a", 1, [KEY])
    history.note_assigned("b", 1, [KEY], 2)
    assert history.given_to(KEY) == 3, "it may begin at the end"
    history.note_given("b", 1, KEY, 1, b"")
    assert history.given_to(KEY) == 2, "it reads again what was not committed"
    assert history.given_to(("t", 1)) == 0
