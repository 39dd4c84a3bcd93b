"""Where a group goes on: every scenario, bounds, and what people write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.groups.offset_resets import (
    EARLIEST,
    KAFKA_WARNINGS,
    LATEST,
    NO_OFFSET,
    OUR_WARNINGS,
    ResetScope,
    ResetWarnings,
    from_plan,
    parse_datetime,
    parse_duration_ms,
    parse_partitions,
    plan,
    read_csv,
    write_csv,
)

A, B = ("t", 0), ("t", 1)
LOGS = {A: (10, 50), B: (0, 0)}
"""First and last offset; a record every 100 ms from 1,000 on, so that offset 10 is of 1,000 ms."""


def offsets_at(partitions: Sequence[tuple[str, int]], timestamp: int) -> Mapping[tuple[str, int], int]:
    def of(key: tuple[str, int]) -> int:
        start, end = LOGS[key]
        if timestamp in (EARLIEST, LATEST):
            return start if timestamp == EARLIEST else end
        found = start + max(0, -(-(timestamp - 1_000) // 100))
        return found if found < end else NO_OFFSET

    return {key: of(key) for key in partitions}


def scope(
    warnings: list[str], committed: Mapping[tuple[str, int], int] | None = None, words: ResetWarnings = OUR_WARNINGS
) -> ResetScope:
    known = {A: 20, B: 0} if committed is None else committed
    return ResetScope("g", [A, B], known, offsets_at, warnings.append, words)


@pytest.mark.parametrize(
    ("scenario", "value", "expected"),
    [
        ("to_earliest", None, {A: 10, B: 0}),
        ("to_latest", None, {A: 50, B: 0}),
        ("to_current", None, {A: 20, B: 0}),
        ("to_offset", 30, {A: 30, B: 0}),
        ("to_offset", 3, {A: 10, B: 0}),
        ("shift_by", -5, {A: 15, B: 0}),
        ("shift_by", 1_000, {A: 50, B: 0}),
        ("to_datetime", "1970-01-01T00:00:02.000", {A: 20, B: 0}),
        ("by_duration", "PT2S", {A: 30, B: 0}),
    ],
)
def test_each_scenario_stays_within_the_log(
    scenario: str, value: str | int | None, expected: dict[tuple[str, int], int]
) -> None:
    assert plan(scope([]), scenario, value, now_ms=5_000) == expected


def test_what_is_out_of_bounds_is_said() -> None:
    warnings: list[str] = []
    plan(scope(warnings), "to_offset", 60, now_ms=0)
    plan(scope(warnings), "to_offset", 3, now_ms=0)
    assert warnings == [
        "t-0 ends at 50, before 60; its end is taken",
        "t-1 ends at 0, before 60; its end is taken",
        "t-0 begins at 10, after 3; its start is taken",
        "t-1 ends at 0, before 3; its end is taken",
    ]


def test_kafkas_tool_says_it_in_kafkas_words() -> None:
    warnings: list[str] = []
    plan(scope(warnings, words=KAFKA_WARNINGS), "to_offset", 60, now_ms=0)
    plan(scope(warnings, words=KAFKA_WARNINGS), "shift_by", -15, now_ms=0)
    plan(scope(warnings, words=KAFKA_WARNINGS), "to_datetime", "1970-01-01T00:00:02.000", now_ms=0)
    assert warnings == [
        "New offset (60) is higher than latest offset for topic partition t-0. Value will be set to 50.",
        "New offset (60) is higher than latest offset for topic partition t-1. Value will be set to 0.",
        "New offset (5) is lower than earliest offset for topic partition t-0. Value will be set to 10.",
        "New offset (-15) is lower than earliest offset for topic partition t-1. Value will be set to 0.",
        "Partition 1 from topic t is empty. Falling back to latest known offset.",
    ]


def test_a_time_after_the_last_record_falls_back_to_the_end_and_says_so() -> None:
    warnings: list[str] = []
    assert plan(scope(warnings), "to_datetime", "2030-01-01T00:00:00.000", now_ms=0) == {A: 50, B: 0}
    assert warnings == [f"t-{index} has no record that late; its end is taken" for index in (0, 1)]


def test_what_is_not_committed_is_not_shifted_and_current_is_then_the_end() -> None:
    assert plan(scope([], {B: 0}), "to_current", None, now_ms=0) == {A: 50, B: 0}
    with pytest.raises(CommandRefused, match="t-0"):
        plan(scope([], {B: 0}), "shift_by", 1, now_ms=0)


def test_a_plan_survives_its_file_for_one_group_and_for_several() -> None:
    plans = {"g": {A: 12, ("a,b", 3): 7}}
    assert read_csv(write_csv(plans, with_group=False), ["g"]) == plans
    several = {"g": {A: 12}, "h": {B: 0}}
    assert read_csv(write_csv(several, with_group=True), ["g", "h"]) == several
    assert from_plan(scope([]), {A: 99}) == {A: 50}


@pytest.mark.parametrize("line", ["t,0", "t,x,1", "g,t,0,1,2", 't,"0', "t; 0; 1", " "])
def test_a_line_that_is_no_plan_is_shown_as_it_stands_in_the_file(line: str) -> None:
    with pytest.raises(CommandRefused) as refused:
        read_csv(f"t,0,1\n\n{line}\nt,1,1\n", ["g"])
    assert refused.value.message.startswith("line 3 of the file is not ")
    assert refused.value.message.endswith(f": {line}")


def test_a_name_may_go_over_two_lines_and_both_count() -> None:
    with pytest.raises(CommandRefused, match=r"line 3 of the file .*: wrong$"):
        read_csv('"g\nh",t,0,1\nwrong\n', ["g", "g\nh"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1S", 1_000), ("P1DT2H3M4.5S", 93_784_500), ("-PT5M", -300_000), ("PT-5M", -300_000), ("p1d", 86_400_000)],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1M", "PT1X"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1_500),
        ("1970-01-01T00:00:01.500Z", 1_500),
        ("1970-01-01T02:00:00.000+02:00", 0),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "1970-01-01", "1970-13-01T00:00:00.000"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_datetime(text)


def test_partitions_of_a_topic() -> None:
    assert parse_partitions("t") == ("t", None)
    assert parse_partitions("t:0,2") == ("t", [0, 2])
    with pytest.raises(click.UsageError):
        parse_partitions("t:0,x")
