"""`consume`: what it says before and beside the records."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.cli.records.consume import _note_assignment
from strandline.cli.records.consuming import _on_assigned


class Member:
    """As much of a consumer as is asked what it holds."""

    def __init__(self) -> None:
        self.held: list[tuple[str, int]] = []

    def assignment(self) -> list[tuple[str, int]]:
        return self.held


def test_a_group_has_a_name(call):
    for name in ("", " "):
        done = call("consume", "hello", "--group", name)
        assert (done.code, done.err.splitlines()[-1]) == (
            2,
            "Error: Invalid value for '--group' / '-g': the name of a group cannot be empty",
        )


def test_what_a_member_reads_is_said_when_it_changes(capsys):
    member = Member()
    on_assigned = _on_assigned("readers", member, _note_assignment)  # type: ignore[arg-type]
    assert on_assigned is not None
    for held in ([], [("hello", 1), ("hello", 0)], [("hello", 0), ("hello", 1)], [("hello", 1), ("other", 0)]):
        member.held = held
        on_assigned([])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "readers: no partitions yet, other members have them all",
        "readers: hello 0,1",
        "readers: hello 1; other 0",
    ]


def test_without_a_callback_the_assignment_is_not_reported():
    assert _on_assigned("readers", Member(), None) is None  # type: ignore[arg-type]
