"""What pushed filters leave to be read."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from strandline.spark.filters import CLOCK_SKEW_MS_MAX, Narrowing, narrowed, narrowing
from strandline.spark.splits import OffsetRange
from tests.unit.spark.memory_cluster_view import MemoryClusterView, topic_id

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def moment(microseconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=microseconds)


def kept(filters: list[Filter], view: MemoryClusterView) -> list[tuple[str, int, int, int]]:
    whole = [OffsetRange(topic, topic_id(1), p, *ends) for (topic, p), ends in sorted(view.logs.items())]
    return [(r.topic, r.partition, r.start, r.end) for r in narrowed(whole, narrowing(filters), view)]


def some() -> MemoryClusterView:
    return MemoryClusterView({("t", 0): (0, 10), ("t", 1): (5, 20), ("u", 0): (0, 10)})


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        ([], [("t", 0, 0, 10), ("t", 1, 5, 20), ("u", 0, 0, 10)]),
        ([EqualTo(("partition",), 1)], [("t", 1, 5, 20)]),
        ([EqualNullSafe(("topic",), "u")], [("u", 0, 0, 10)]),
        ([In(("partition",), (1, 7, None))], [("t", 1, 5, 20)]),
        ([EqualTo(("topic",), "t"), EqualTo(("partition",), 0)], [("t", 0, 0, 10)]),
        ([In(("topic",), ("t", "u")), EqualTo(("topic",), "u")], [("u", 0, 0, 10)]),
        ([EqualTo(("topic",), "t"), EqualTo(("topic",), "u")], []),
        ([EqualTo(("partition",), None)], []),
        ([GreaterThan(("offset",), 8)], [("t", 0, 9, 10), ("t", 1, 9, 20), ("u", 0, 9, 10)]),
        ([GreaterThanOrEqual(("offset",), 9)], [("t", 0, 9, 10), ("t", 1, 9, 20), ("u", 0, 9, 10)]),
        ([LessThan(("offset",), 6)], [("t", 0, 0, 6), ("t", 1, 5, 6), ("u", 0, 0, 6)]),
        ([LessThanOrEqual(("offset",), 4)], [("t", 0, 0, 5), ("u", 0, 0, 5)]),
        ([EqualTo(("offset",), 15)], [("t", 1, 15, 16)]),
        ([In(("offset",), (12, 15))], [("t", 1, 12, 16)]),
        ([GreaterThan(("offset",), 5), LessThan(("offset",), 5)], []),
    ],
    ids=lambda value: " ".join(type(f).__name__ for f in value) if value and isinstance(value[0], Filter) else None,
)
def test_topics_partitions_and_offsets(pushed: list[Filter], expected: list[tuple[str, int, int, int]]) -> None:
    view = some()
    assert kept(pushed, view) == expected
    assert view.asked == []


@pytest.mark.parametrize(
    "pushed",
    [
        IsNotNull(("value",)),
        EqualTo(("value",), b"x"),
        EqualTo(("headers", "key"), "x"),
        Not(EqualTo(("partition",), 1)),
        StringContains(("topic",), "t"),
        EqualTo(("offset",), None),
        EqualTo(("offset",), "5"),
        In(("offset",), (5, "x")),
        GreaterThan(("offset",), True),
        GreaterThan(("partition",), 0),
        GreaterThan(("timestamp",), "2026-01-01"),
        GreaterThan(("timestamp",), datetime.datetime(2026, 1, 1)),
    ],
    ids=str,
)
def test_what_is_not_understood_is_not_used(pushed: Filter) -> None:
    assert narrowing([pushed]) == Narrowing()


def test_a_lower_bound_of_time_comes_from_the_index() -> None:
    view = MemoryClusterView(
        {("t", 0): (5, 8), ("t", 1): (0, 3)}, timestamps={("t", 0): [100, 300, 200], ("t", 1): [1, 2, 3]}
    )
    assert kept([GreaterThanOrEqual(("timestamp",), moment(150_000))], view) == [("t", 0, 6, 8)]
    assert view.asked == ["by_timestamp"]


def test_bounds_of_time_are_in_microseconds_and_records_in_milliseconds() -> None:
    assert narrowing([GreaterThanOrEqual(("timestamp",), moment(5_000))]).timestamp_min_ms == 5
    assert narrowing([GreaterThan(("timestamp",), moment(5_000))]).timestamp_min_ms == 6
    assert narrowing([GreaterThanOrEqual(("timestamp",), moment(5_001))]).timestamp_min_ms == 6
    assert narrowing([LessThanOrEqual(("timestamp",), moment(5_000))]).timestamp_max_ms == 5
    assert narrowing([LessThan(("timestamp",), moment(5_000))]).timestamp_max_ms == 4
    assert narrowing([LessThan(("timestamp",), moment(5_001))]).timestamp_max_ms == 5
    both = narrowing([EqualTo(("timestamp",), moment(5_000)), GreaterThan(("timestamp",), moment(1_000))])
    assert (both.timestamp_min_ms, both.timestamp_max_ms) == (5, 5)


def test_a_time_zone_is_understood() -> None:
    there = datetime.timezone(datetime.timedelta(hours=9))
    assert narrowing([GreaterThan(("timestamp",), moment(7_999).astimezone(there))]).timestamp_min_ms == 8


def test_an_upper_bound_of_time_holds_only_where_the_broker_sets_it() -> None:
    late = CLOCK_SKEW_MS_MAX + 1000
    times = {("a", 0): [10, 20, late], ("c", 0): [10, 20, late]}
    view = MemoryClusterView({("a", 0): (0, 3), ("c", 0): (0, 3)}, timestamps=times, by_append_time=frozenset("a"))
    assert kept([LessThan(("timestamp",), moment(20_000))], view) == [("a", 0, 0, 2), ("c", 0, 0, 3)]


def test_records_without_a_timestamp_are_found_by_bounds_below_zero() -> None:
    view = MemoryClusterView({("t", 0): (0, 2)}, timestamps={("t", 0): [-1, 5]})
    assert kept([GreaterThan(("timestamp",), moment(-5_000_000))], view) == [("t", 0, 0, 2)]


columns = st.sampled_from(["topic", "partition", "offset", "timestamp"])
small = st.integers(-2, 12)


@st.composite
def pushes(draw: st.DrawFn) -> tuple[Filter, str, Any, str]:
    """A filter, and what it is in words that the test can apply to a record."""
    column = draw(columns)
    values = {
        "topic": st.sampled_from("tux"),
        "partition": st.integers(0, 2),
        "offset": small,
        "timestamp": st.integers(-2_000, 9_000).map(moment),
    }[column]
    kind = draw(st.sampled_from(["=", "in", ">", ">=", "<", "<="]))
    value = draw(st.lists(values, min_size=1, max_size=3).map(tuple) if kind == "in" else values)
    made = {"=": EqualTo, "in": In, ">": GreaterThan, ">=": GreaterThanOrEqual, "<": LessThan, "<=": LessThanOrEqual}
    return made[kind]((column,), value), column, value, kind


def passes(record: dict[str, Any], column: str, value: Any, kind: str) -> bool:
    found = record[column]
    match kind:
        case "=":
            return bool(found == value)
        case "in":
            return found in value
        case ">":
            return bool(found > value)
        case ">=":
            return bool(found >= value)
        case "<":
            return bool(found < value)
    return bool(found <= value)


@given(st.lists(pushes(), max_size=4), st.lists(st.integers(-1, 8), min_size=6, max_size=6))
def test_no_record_that_passes_all_filters_is_left_out(
    pushed: list[tuple[Filter, str, Any, str]], times: list[int]
) -> None:
    logs = {("t", 0): (0, 6), ("t", 1): (3, 9), ("u", 0): (0, 6)}
    view = MemoryClusterView(dict(logs), timestamps=dict.fromkeys(logs, times))
    remaining = kept([f for f, *_ in pushed], view)
    for (topic, partition), (earliest, latest) in logs.items():
        for offset in range(earliest, latest):
            time = moment(times[offset - earliest] * 1000)
            record = {"topic": topic, "partition": partition, "offset": offset, "timestamp": time}
            if all(passes(record, *words) for _, *words in pushed):
                assert any((t, p) == (topic, partition) and a <= offset < b for t, p, a, b in remaining)
