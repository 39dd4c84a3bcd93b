"""What Kafka's tool prints of a group, to the byte; `tests/system` compares with the tool itself."""

from __future__ import annotations

from strandline.cli.groups.group_rows import MemberRow, OffsetRow, StateRow
from strandline.cli.groups.group_tables import (
    assignment,
    deleted_offsets_table,
    listing_table,
    members_table,
    offsets_table,
    plan_table,
    state_table,
)

OFFSETS = [
    OffsetRow("g", "t", 0, 3, 1, 10, "member-1", "/127.0.0.1", "client"),
    OffsetRow("g", "t", 1, None, None, None, None, None, None),
]


def member(name: str, **facts: object) -> MemberRow:
    given = {"instance_id": None, "epoch": 4, "target_epoch": 5, "upgraded": True, "target": (), **facts}
    return MemberRow("g", name, host="/h", client_id="c", assigned=(("t", 1), ("t", 0)), **given)  # type: ignore[arg-type]


def test_lag_is_shown_where_both_offsets_are_known() -> None:
    assert [row.lag for row in OFFSETS] == [7, None]
    lines = offsets_table(OFFSETS, verbose=False).split("\n")
    assert " ".join(lines[1].split()) == (
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    )
    assert lines[2].split() == ["g", "t", "0", "3", "10", "7", "member-1", "/127.0.0.1", "client"]
    assert lines[3].split() == ["g", "t", "1", "-", "-", "-", "-", "-", "-"]
    assert lines[1].index("TOPIC") == 16
    assert lines[0] == lines[4] == ""


def test_the_leader_epoch_is_for_those_who_want_more() -> None:
    line = offsets_table(OFFSETS, verbose=True).split("\n")[2]
    assert line.split() == ["g", "t", "0", "1", "3", "10", "7", "member-1", "/127.0.0.1", "client"]


def test_members_have_an_instance_column_if_one_is_static_and_an_upgrade_column_while_they_differ() -> None:
    assert "GROUP-INSTANCE-ID" not in members_table([member("m")], verbose=True)
    assert "GROUP-INSTANCE-ID" in members_table([member("m", instance_id="i")], verbose=False)
    assert "UPGRADED" not in members_table([member("m")], verbose=True)
    both = members_table([member("m"), member("n", upgraded=False)], verbose=True)
    assert [line.split()[-1] for line in both.strip().split("\n")] == ["UPGRADED", "true", "false"]


def test_an_assignment_is_grouped_by_topic() -> None:
    assert assignment([("b", 0), ("a", 2), ("a", 1)]) == "a:1,2;b:0"
    assert assignment([]) == "-"


def test_states() -> None:
    row = StateRow("g", "h", 9092, 1, "", "Empty", None, None, 0)
    header, line = state_table(row, verbose=False).strip().split("\n")
    assert header.index("STATE") == line.index("Empty")
    assert line.split() == ["g", "h:9092", "(1)", "-", "Empty", "0"]
    assert state_table(row, verbose=True).split("\n")[1].split()[-3:] == [
        "GROUP-EPOCH",
        "TARGET-ASSIGNMENT-EPOCH",
        "#MEMBERS",
    ]


def test_lists_plans_and_deletions() -> None:
    assert listing_table([["g", "Stable"]], ["GROUP", "STATE"]).split("\n")[1] == "g".ljust(25) + " " + "Stable".ljust(
        20
    )
    assert plan_table({}) == "\n"
    assert plan_table({"g": {("t", 0): 5}}).split("\n")[2].split() == ["g", "t", "0", "5"]
    shown = deleted_offsets_table({("t", 0): None, ("u", -1): "no such topic"}).split("\n")
    assert shown[2].split() == ["t", "0", "Successful"]
    assert shown[3].rstrip().endswith("Error: no such topic")
