"""The tables of `kafka-consumer-groups`, byte for byte: offsets with lag, members, state, and a plan of a reset.

Always true: a column is as wide as its widest value and at least as wide as in Kafka's tool; an unknown value is a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from strandline.cli.groups.group_rows import MemberRow, OffsetRow, StateRow
from strandline.cli.groups.offset_resets import OffsetPlan
from strandline.cli.terminal.escaping import shown
from strandline.ids import TopicPartition

MISSING = "-"
WIDTH = 15


def offsets_table(rows: Sequence[OffsetRow], *, verbose: bool) -> str:
    headings = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    widths = [
        _width(row.group for row in rows),
        _width(_shown(row.topic) for row in rows),
        10,
        WIDTH,
        WIDTH,
        WIDTH,
        _width(_shown(row.consumer_id) for row in rows),
        _width(_shown(row.host) for row in rows),
        0,
    ]
    cells = [
        [
            row.group,
            row.topic,
            row.partition,
            row.offset,
            row.log_end_offset,
            row.lag,
            row.consumer_id,
            row.host,
            row.client_id,
        ]
        for row in rows
    ]
    if verbose:
        headings.insert(3, "LEADER-EPOCH")
        widths.insert(3, WIDTH)
        for row, line in zip(rows, cells, strict=True):
            line.insert(3, row.leader_epoch)
    lines: list[Sequence[object]] = [headings, *cells]
    return "".join("\n" + _line(line, widths) for line in lines) + "\n"


def members_table(rows: Sequence[MemberRow], *, verbose: bool) -> str:
    with_instance = any(row.instance_id for row in rows)
    with_upgrade = {row.upgraded for row in rows} >= {True, False}
    headings, widths = ["GROUP", "CONSUMER-ID"], [_width(r.group for r in rows), _width(r.consumer_id for r in rows)]
    if with_instance:
        headings.append("GROUP-INSTANCE-ID")
        widths.append(_width((row.instance_id or "" for row in rows), 17))
    headings += ["HOST", "CLIENT-ID", "#PARTITIONS"]
    widths += [_width(row.host for row in rows), _width(row.client_id for row in rows), WIDTH]
    if verbose:
        headings += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [
            WIDTH,
            _width((assignment(row.assigned) for row in rows), 20),
            WIDTH,
            _width((assignment(row.target) for row in rows), 20),
        ]
        if with_upgrade:
            headings.append("UPGRADED")
            widths.append(0)
    lines: list[Sequence[object]] = [headings]
    for row in rows:
        line: list[object] = [row.group, row.consumer_id, *([row.instance_id or ""] if with_instance else [])]
        line += [row.host, row.client_id, len(row.assigned)]
        if verbose:
            line += [row.epoch, assignment(row.assigned), row.target_epoch, assignment(row.target)]
            line += [None if row.upgraded is None else str(row.upgraded).lower()] if with_upgrade else []
        lines.append(line)
    # Kafka's tool ends these lines with a blank.
    end = "" if verbose else " "
    return "\n" + "".join(_line(line, widths) + end + "\n" for line in lines)


def state_table(row: StateRow, *, verbose: bool) -> str:
    coordinator = f"{row.coordinator_host}:{row.coordinator_port}  ({row.coordinator_id})"
    headings = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    widths = [_width([row.group]), _width([coordinator], 25), 20, 20]
    line: list[object] = [row.group, coordinator, row.strategy or None, row.state]
    if verbose:
        headings += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        widths += [15, 25]
        line += [row.epoch, row.target_epoch]
    return (
        "".join("\n" + _line(cells, [*widths, 0]) for cells in ([*headings, "#MEMBERS"], [*line, row.members])) + "\n"
    )


def listing_table(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> str:
    """Groups with their types, states or both."""
    widths = [_width(row[0] for row in rows) + 10, *(20 for _ in headings[1:])]
    return "".join(_line(line, widths) + "\n" for line in [headings, *rows])


def plan_table(plans: Mapping[str, OffsetPlan]) -> str:
    """The new offsets of a reset."""
    widths = [_width(plans), _width(topic for planned in plans.values() for topic, _ in planned), 10, 0]
    lines: list[Sequence[object]] = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plans else []
    lines += [(group, *key, offset) for group, planned in plans.items() for key, offset in planned.items()]
    return "".join("\n" + _line(line, widths) for line in lines) + "\n"


def deleted_offsets_table(results: Mapping[TopicPartition, str | None]) -> str:
    """The result of each partition: None, or the error."""
    widths = [_width(topic for topic, _ in results), 10, 15]
    lines: list[Sequence[object]] = [("TOPIC", "PARTITION", "STATUS")]
    for (topic, partition), problem in sorted(results.items(), key=lambda one: f"{one[0][0]}{one[0][1]}"):
        status = "Successful" if problem is None else f"Error: {problem}"
        lines.append((topic, None if partition < 0 else partition, status))
    return "".join("\n" + _line(line, widths) for line in lines) + "\n"


def assignment(partitions: Iterable[TopicPartition]) -> str:
    """`a:0,1;b:0`."""
    grouped = groupby(sorted(partitions), key=lambda key: key[0])
    return ";".join(f"{topic}:{','.join(str(index) for _, index in keys)}" for topic, keys in grouped) or MISSING


def _width(values: Iterable[str], least: int = WIDTH) -> int:
    return max([least, *(len(_shown(value)) for value in values)])


def _shown(value: object) -> str:
    return MISSING if value is None else shown(str(value))


def _line(cells: Sequence[object], widths: Sequence[int]) -> str:
    return " ".join(_shown(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))
