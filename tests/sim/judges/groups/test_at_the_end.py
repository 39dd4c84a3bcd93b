"""What members were given and committed: nothing skipped, nothing out of order, nothing left."""

from __future__ import annotations

from strandline.histories.groups.history import GroupHistory
from strandline.histories.judges.groups import at_the_end
from strandline.histories.record_history import RecordHistory, RecordPosition

KEY = ("t", 0)


def stored(*values: str) -> RecordHistory:
    history = RecordHistory()
    for offset, value in enumerate(values):
        history.note_stored(RecordPosition(*KEY, offset), value.encode())
    return history


def given(*stretches: tuple[str, dict[int, str]], committed: int) -> GroupHistory:
    """Who had the partition, one after the other, and what each was given."""
    group = GroupHistory()
    for life, (who, records) in enumerate(stretches):
        group.note_assigned(who, life, [KEY], life)
        for offset, value in records.items():
            assert group.note_given(who, life, KEY, offset, value.encode())
        group.note_gone(who, life, [KEY])
    group.final = {KEY: committed}
    return group


def found(group: GroupHistory, history: RecordHistory) -> set[str]:
    return {problem.property for problem in at_the_end.judge(group, history, 0.0)}


def test_a_sound_one() -> None:
    group = given(("a", {0: "x", 1: "y"}), ("b", {1: "y", 2: "z"}), committed=3)
    assert not found(group, stored("x", "y", "z"))


def test_what_is_committed_and_was_given_to_nobody_is_skipped() -> None:
    assert found(given(("a", {0: "x"}), ("b", {2: "z"}), committed=3), stored("x", "y", "z")) == {"skipped-by-group"}


def test_what_was_given_as_something_else_is_skipped() -> None:
    assert found(given(("a", {0: "x", 1: "?"}), committed=2), stored("x", "y")) == {"skipped-by-group"}


def test_what_is_not_committed_lags() -> None:
    assert found(given(("a", {0: "x"}), committed=1), stored("x", "y")) == {"group-lags"}


def test_order_within_a_holding() -> None:
    assert found(given(("a", {1: "y", 0: "x"}), committed=2), stored("x", "y")) == {"group-poll-order"}
    left_out = given(("a", {1: "y"}), ("b", {0: "x", 2: "z"}), committed=3)
    assert found(left_out, stored("x", "y", "z")) == {"group-poll-order"}


def test_what_is_given_to_somebody_who_does_not_hold_it_is_known() -> None:
    group = given(("a", {0: "x"}), committed=1)
    assert not group.note_given("a", 0, KEY, 1, b"y")
