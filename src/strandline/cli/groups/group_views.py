"""The output of `groups`: offsets, members and state of a group, and a plan, as tables and as JSON.

Always true: output to another program has every column; on a terminal, empty columns are left out, and if the table is too wide
also columns with one value, and the middle of member ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.cli.groups.group_rows import OffsetRow
from strandline.cli.groups.group_tables import assignment
from strandline.cli.groups.offset_resets import OffsetPlan
from strandline.cli.terminal.escaping import shown
from strandline.cli.terminal.output import is_terminal, note, print_json, print_table
from strandline.client.flow.group_descriptions import GroupDescription
from strandline.ids import TopicPartition

OFFSET_COLUMNS = ("group", "topic", "partition", "offset", "end", "lag", "member", "client", "host")
MEMBER_COLUMNS = ("group", "member", "client", "host", "instance", "partitions", "epoch", "assignment", "target")
STATE_COLUMNS = ("group", "type", "state", "members", "coordinator", "assignor", "epoch", "target epoch")
PLAN_COLUMNS = ("topic", "partition", "current offset", "new offset", "difference")
DISPENSABLE = ("host", "client")
"""Columns left out of a table that is too wide if all rows have the same value, in this order."""
TARGETS = {"target": "assignment", "target epoch": "epoch"}
"""Target columns, left out if they equal the current ones."""
GAP = 2
"""Blanks between columns."""
MEMBER_ID_MIN = 16

Rows = Sequence[Sequence[object]]


def print_group(group: GroupDescription, offsets: Sequence[OffsetRow] | None) -> None:
    """Offsets and lag of each partition, or the members."""
    lag = "" if offsets is None else f", lag {sum(row.lag or 0 for row in offsets)}"
    count = len(group.members)
    note(
        f"{shown(group.group_id, err=True)}: {group.type.lower()}, {group.state}, {count} member{'' if count == 1 else 's'}{lag}"
    )
    columns: Sequence[str]
    if offsets is None:
        columns, rows, empty = MEMBER_COLUMNS, _member_rows(group), "no members"
    else:
        columns, rows, empty = OFFSET_COLUMNS, _offset_rows(offsets), "no committed offsets, and no members"
    if is_terminal():
        # The line above names the group.
        columns, rows = columns[1:], [row[1:] for row in rows]
    _print(columns, rows, empty)


def _print(columns: Sequence[str], rows: Rows, empty: str = "") -> None:
    if rows and is_terminal():
        from rich.console import Console

        columns, rows = fitted(columns, rows, Console().width)
    print_table(columns, rows, empty=empty)


def _offset_rows(offsets: Sequence[OffsetRow]) -> Rows:
    return [
        (
            row.group,
            row.topic,
            row.partition,
            row.offset,
            row.log_end_offset,
            row.lag,
            row.consumer_id,
            row.client_id,
            row.host,
        )
        for row in offsets
    ]


def _member_rows(group: GroupDescription) -> Rows:
    return [
        (
            group.group_id,
            member.member_id,
            member.client_id,
            member.host,
            member.group_instance_id,
            len(member.assignment),
            member.member_epoch,
            assignment(member.assignment),
            None if member.target_assignment is None else assignment(member.target_assignment),
        )
        for member in group.members
    ]


def print_states(found: Sequence[GroupDescription]) -> None:
    rows = [
        (
            group.group_id,
            group.type,
            group.state,
            len(group.members),
            f"{group.coordinator.host}:{group.coordinator.port} ({group.coordinator.node_id})",
            group.assignor or None,
            group.group_epoch,
            group.assignment_epoch,
        )
        for group in found
    ]
    _print(STATE_COLUMNS, rows)


def print_plan(planned: OffsetPlan, known: Mapping[TopicPartition, int], *, as_json: bool) -> None:
    """The current and new offset of each partition, and the difference."""
    rows = [
        (*key, known.get(key), offset, None if key not in known else offset - known[key])
        for key, offset in planned.items()
    ]
    if as_json:
        names = ("topic", "partition", "current_offset", "offset", "difference")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table(PLAN_COLUMNS, [(*row[:4], f"{row[4]:+}" if row[4] else row[4]) for row in rows])


# Terminals


def fitted(columns: Sequence[str], rows: Rows, width: int) -> tuple[list[str], list[list[object]]]:
    """The table for a terminal of this width; if it is still wider, the terminal folds it."""
    table = {name: [row[index] for row in rows] for index, name in enumerate(columns)}
    table = {name: cells for name, cells in table.items() if any(cell is not None for cell in cells)}
    for target, current in TARGETS.items():
        if target in table and table[target] == table[current]:
            del table[target]
    for name in DISPENSABLE:
        if name in table and len(set(table[name])) == 1 and _width(table) > width:
            del table[name]
    if "member" in table and (excess := _width(table) - width) > 0:
        room = max(MEMBER_ID_MIN, _column_width("member", table["member"]) - excess)
        table["member"] = [None if cell is None else shortened(str(cell), room) for cell in table["member"]]
    return list(table), [list(row) for row in zip(*table.values(), strict=True)]


def _width(table: Mapping[str, Sequence[object]]) -> int:
    return sum(_column_width(name, cells) + GAP for name, cells in table.items()) - GAP


def _column_width(name: str, cells: Sequence[object]) -> int:
    return max(len(name), *(len(str(cell)) for cell in cells))


def shortened(text: str, width: int) -> str:
    """The text without its middle if it is longer: ids differ at their beginning or end."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


# JSON


def details(group: GroupDescription, offsets: Sequence[OffsetRow] | None) -> dict[str, object]:
    found: dict[str, object] = {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor or None,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "coordinator": {
            "node_id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "epoch": member.member_epoch,
                "assignment": _by_topic(member.assignment),
                "target": None if member.target_assignment is None else _by_topic(member.target_assignment),
            }
            for member in group.members
        ],
    }
    if offsets is not None:
        found["offsets"] = [
            {
                "topic": row.topic,
                "partition": row.partition,
                "offset": row.offset,
                "leader_epoch": row.leader_epoch,
                "log_end_offset": row.log_end_offset,
                "lag": row.lag,
                "member_id": row.consumer_id,
            }
            for row in offsets
        ]
    return found


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found
