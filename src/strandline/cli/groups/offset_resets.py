"""The plan of an offset reset, for `groups reset-offsets` and `kafka-consumer-groups --reset-offsets`.

Always true: a planned offset lies between the log start and the log end of its partition; a requested offset outside is moved to
the nearer end, with a warning. Making a plan changes nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import click

from strandline.cli.errors import CommandRefused
from strandline.ids import TopicPartition

OffsetPlan = dict[TopicPartition, int]

EARLIEST, LATEST = -2, -1
NO_OFFSET = -1
LINE_SHOWN = 200
"""Characters shown of a line that cannot be parsed."""
SCENARIOS = (
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "to_earliest",
    "to_latest",
    "to_current",
    "from_file",
)
_DURATION = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def scenario_value(value: object) -> str | int | None:
    """The value of a scenario's option; None for a flag."""
    assert isinstance(value, str | int)
    return None if value is True else value


class OffsetLookup(Protocol):
    """Lookup of the offsets of partitions at a timestamp, EARLIEST or LATEST."""

    def __call__(self, partitions: Sequence[TopicPartition], timestamp: int) -> Mapping[TopicPartition, int]: ...


class ResetWarnings(NamedTuple):
    """Warnings for a planned offset that differs from the requested one."""

    beyond_the_end: str
    before_the_start: str
    too_late: str


KAFKA_WARNINGS = ResetWarnings(
    "New offset ({requested}) is higher than latest offset for topic partition {topic}-{partition}. "
    "Value will be set to {planned}.",
    "New offset ({requested}) is lower than earliest offset for topic partition {topic}-{partition}. "
    "Value will be set to {planned}.",
    "Partition {partition} from topic {topic} is empty. Falling back to latest known offset.",
)
OUR_WARNINGS = ResetWarnings(
    "{topic}-{partition} ends at {planned}, before {requested}; its end is taken",
    "{topic}-{partition} begins at {planned}, after {requested}; its start is taken",
    "{topic}-{partition} has no record that late; its end is taken",
)


class ResetScope(NamedTuple):
    """What is reset: the group and its committed offsets, the partitions, and a lookup of their offsets."""

    group: str
    partitions: Sequence[TopicPartition]
    committed: Mapping[TopicPartition, int]
    offsets_at: OffsetLookup
    warn: Callable[[str], None]
    warnings: ResetWarnings = OUR_WARNINGS


def plan(scope: ResetScope, scenario: str, value: str | int | None, now_ms: int) -> OffsetPlan:
    """The new offset of each partition; `value` is the value of the scenario's option."""
    match scenario:
        case "to_earliest":
            return dict(scope.offsets_at(scope.partitions, EARLIEST))
        case "to_latest":
            return dict(scope.offsets_at(scope.partitions, LATEST))
        case "to_offset":
            return _within_the_log(scope, dict.fromkeys(scope.partitions, int(value or 0)))
        case "shift_by":
            return _within_the_log(scope, {key: _current(scope, key) + int(value or 0) for key in scope.partitions})
        case "to_current":
            return _to_current(scope)
        case "to_datetime":
            return _at_time(scope, parse_datetime(str(value)))
        case "by_duration":
            return _at_time(scope, now_ms - parse_duration_ms(str(value)))
    raise AssertionError(f"no scenario {scenario}")


def from_plan(scope: ResetScope, requested: Mapping[TopicPartition, int]) -> OffsetPlan:
    """The offsets in a file, limited to the logs."""
    return _within_the_log(scope, requested)


def _current(scope: ResetScope, key: TopicPartition) -> int:
    if key not in scope.committed:
        raise CommandRefused(
            f"Cannot shift offset for partition {named(key)} since there is no current committed offset"
        )
    return scope.committed[key]


def _to_current(scope: ResetScope) -> OffsetPlan:
    known = {key: scope.committed[key] for key in scope.partitions if key in scope.committed}
    unknown = [key for key in scope.partitions if key not in scope.committed]
    return {**known, **scope.offsets_at(unknown, LATEST)} if unknown else known


def _at_time(scope: ResetScope, timestamp: int) -> OffsetPlan:
    found = dict(scope.offsets_at(scope.partitions, timestamp))
    none = [key for key in scope.partitions if found.get(key, NO_OFFSET) == NO_OFFSET]
    for topic, partition in none:
        scope.warn(scope.warnings.too_late.format(topic=topic, partition=partition))
    return {**found, **scope.offsets_at(none, LATEST)} if none else found


def _within_the_log(scope: ResetScope, requested: Mapping[TopicPartition, int]) -> OffsetPlan:
    keys = list(requested)
    starts, ends = scope.offsets_at(keys, EARLIEST), scope.offsets_at(keys, LATEST)
    planned = {}
    for key, offset in requested.items():
        bound = min(max(offset, starts[key]), ends[key])
        if bound != offset:
            warning = scope.warnings.beyond_the_end if offset > bound else scope.warnings.before_the_start
            scope.warn(warning.format(topic=key[0], partition=key[1], requested=offset, planned=bound))
        planned[key] = bound
    return planned


# Parsing


def named(key: TopicPartition) -> str:
    return f"{key[0]}-{key[1]}"


def parse_partitions(argument: str) -> tuple[str, list[int] | None]:
    """The topic and partitions in `topic` or `topic:0,1,2`; None means all partitions."""
    topic, colon, indexes = argument.partition(":")
    if not colon:
        return topic, None
    try:
        return topic, [int(index) for index in indexes.split(",")]
    except ValueError:
        raise click.UsageError(f"{argument}: write it as topic or topic:0,1,2") from None


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 of `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it names a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{text} is not a time; write it as YYYY-MM-DDThh:mm:ss.sss") from None
    if "T" not in text:
        raise click.UsageError(f"{text} has no time of day; write it as YYYY-MM-DDThh:mm:ss.sss")
    if moment.tzinfo is None:
        moment = datetime.fromisoformat(f"{text}+00:00")
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of days and less, `P1DT2H30M`."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {name: found[name] for name in ("days", "hours", "minutes", "seconds")}
    if found is None or not any(parts.values()) or found["time"] in ("T", "t"):
        raise click.UsageError(f"{text} is not a duration; write it as PnDTnHnMnS, for example PT1H30M")
    seconds = (
        int(parts["days"] or 0) * 86_400
        + int(parts["hours"] or 0) * 3_600
        + int(parts["minutes"] or 0) * 60
        + float(parts["seconds"] or 0)
    )
    return round(seconds * 1000) * (-1 if found["sign"] == "-" else 1)


def read_csv(text: str, groups: Sequence[str]) -> dict[str, OffsetPlan]:
    """Plans by group: lines of `topic,partition,offset` for one group, or of `group,topic,partition,offset`."""
    plans: dict[str, OffsetPlan] = {}
    lines = text.split("\n")
    rows = csv.reader(io.StringIO(text))
    read = 0
    while True:
        try:
            row = next(rows, None)
            if row is None:
                return plans
            if row:
                group, topic, partition, offset = [groups[0], *row] if len(row) == 3 and len(groups) == 1 else row
                plans.setdefault(group, {})[topic, int(partition)] = int(offset)
        except (ValueError, csv.Error):
            what = "topic,partition,offset or group,topic,partition,offset"
            raise CommandRefused(f"line {read + 1} of the file is not {what}: {lines[read][:LINE_SHOWN]}") from None
        read = rows.line_num


def write_csv(plans: Mapping[str, OffsetPlan], *, with_group: bool) -> str:
    """The plans as CSV that `read_csv` reads."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    for group, planned in plans.items():
        for (topic, partition), offset in planned.items():
            writer.writerow([*([group] if with_group else []), topic, partition, offset])
    return output.getvalue()
