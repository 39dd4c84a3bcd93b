"""Where a read starts or ends, before the log is asked for numbers.

Always true: of startingTimestamp, startingOffsetsByTimestamp and startingOffsets the first one given decides, and so with ending*.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from strandline.ids import TopicPartition
from strandline.spark.errors import OptionError
from strandline.spark.options import values


@dataclasses.dataclass(frozen=True, slots=True)
class Earliest:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Latest:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class AtOffsets:
    """Each partition at its offset, at -2 (earliest) or at -1 (latest)."""

    offsets: Mapping[TopicPartition, int]


@dataclasses.dataclass(frozen=True, slots=True)
class AtTimestamp:
    """Each partition at its first record of this time or later."""

    timestamp_ms: int


@dataclasses.dataclass(frozen=True, slots=True)
class AtTimestamps:
    timestamps_ms: Mapping[TopicPartition, int]


@dataclasses.dataclass(frozen=True, slots=True)
class AtGroup:
    """Each partition where the group has committed it; earliest where it has not."""

    group_id: str


Bound = Earliest | Latest | AtOffsets | AtTimestamp | AtTimestamps | AtGroup
WithoutMatch = Literal["error", "latest"]
"""What a starting timestamp means for a partition that has no record of that time or later."""


def option_names(side: str) -> tuple[str, str, str]:
    """Of `starting` or `ending`, in the order in which they decide."""
    return f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"


def start_bound(options: Mapping[str, str], *, streaming: bool) -> Bound:
    bound = _bound(options, "starting")
    match bound:
        case None:
            return Latest() if streaming else Earliest()
        case Latest() if not streaming:
            raise OptionError("option 'startingOffsets' of a batch query is not 'latest': it would read nothing")
        case AtOffsets(offsets) if not streaming:
            _refuse("startingOffsets", offsets, values.LATEST, "latest (-1)")
    return bound


def end_bound(options: Mapping[str, str]) -> Bound:
    """Of a batch query; a stream has no end."""
    bound = _bound(options, "ending")
    match bound:
        case None:
            return Latest()
        case Earliest():
            raise OptionError("option 'endingOffsets' is not 'earliest': the query would read nothing")
        case AtOffsets(offsets):
            _refuse("endingOffsets", offsets, values.EARLIEST, "earliest (-2)")
    return bound


def check_order(start: Bound, end: Bound) -> None:
    """What can be seen without the log: both ends name the same partitions, and the start is not after the end."""
    match start, end:
        case AtTimestamp(first), AtTimestamp(last) if first > last:
            raise OptionError(f"option 'startingTimestamp' ({first}) is after 'endingTimestamp' ({last})")
        case AtOffsets(starts), AtOffsets(ends):
            _check_each("startingOffsets", starts, "endingOffsets", ends)
        case AtTimestamps(starts), AtTimestamps(ends):
            _check_each("startingOffsetsByTimestamp", starts, "endingOffsetsByTimestamp", ends)


def _bound(options: Mapping[str, str], side: str) -> Bound | None:
    by_time, by_times, by_offsets = option_names(side)
    if by_time in options:
        return AtTimestamp(values.whole(by_time, options[by_time], 0))
    if by_times in options:
        return AtTimestamps(values.timestamps(by_times, options[by_times]))
    if by_offsets not in options:
        return None
    text = options[by_offsets].strip()
    match text.lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
        case "group" if side == "starting":
            if not options.get("groupId"):
                raise OptionError("option 'startingOffsets' is 'group': say which group with the option 'groupId'")
            return AtGroup(options["groupId"])
    if not text.startswith("{"):
        words = "earliest, latest, group" if side == "starting" else "latest"
        raise OptionError(f"option '{by_offsets}' is {words} or JSON by topic and partition, not '{text}'")
    return AtOffsets(values.offsets(by_offsets, text))


def _refuse(name: str, offsets: Mapping[TopicPartition, int], special: int, called: str) -> None:
    for (topic, partition), offset in offsets.items():
        if offset == special:
            raise OptionError(
                f"option '{name}': {topic}-{partition} in a batch query is not {called}: it would read nothing"
            )


def _check_each(
    start_name: str, starts: Mapping[TopicPartition, int], end_name: str, ends: Mapping[TopicPartition, int]
) -> None:
    for topic, partition in sorted(starts.keys() ^ ends.keys()):
        has, lacks = (start_name, end_name) if (topic, partition) in starts else (end_name, start_name)
        raise OptionError(
            f"{topic}-{partition} is in option '{has}' and not in '{lacks}'; name the same partitions in both"
        )
    for topic, partition in starts:
        start, end = starts[topic, partition], ends[topic, partition]
        if start > end >= 0:
            raise OptionError(f"{topic}-{partition}: option '{start_name}' ({start}) is after '{end_name}' ({end})")
