"""How far a micro-batch goes."""

# mypy: disable-error-code="var-annotated"

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)

from strandline.ids import TopicPartition
from strandline.spark.limits import TriggerLimits, TriggerPace, admitted, default_read_limit, under, within_target
from tests.unit.spark.memory_cluster_view import options

partitions = st.tuples(st.sampled_from("ab"), st.integers(0, 5))
logs = st.dictionaries(
    partitions, st.tuples(st.integers(0, 2**62), st.integers(-3, 10**6), st.floats(0.001, 1e7)), min_size=1
)
bounded = st.builds(
    lambda o, b: TriggerLimits(offsets_max=o, bytes_max=b),
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 10**9),
)


def at(*offsets: int) -> dict[TopicPartition, int]:
    return {("t", partition): offset for partition, offset in enumerate(offsets)}


@given(logs, bounded)
def test_a_batch_makes_progress_and_stays_within_its_limits(
    found: dict[TopicPartition, tuple[int, int, float]], limits: TriggerLimits
) -> None:
    start = {p: first for p, (first, _, _) in found.items()}
    latest = {p: max(0, first + lag) for p, (first, lag, _) in found.items()}
    per_offset = {p: density for p, (_, _, density) in found.items()}
    end = admitted(limits, start, latest, per_offset)
    assert end.keys() == latest.keys()
    taken = {p: end[p] - start[p] for p in end if latest[p] > start[p]}
    assert all(0 <= taken[p] <= latest[p] - start[p] for p in taken)
    assert all(end[p] == latest[p] for p in end if p not in taken)
    if taken:
        assert sum(taken.values()) >= 1
    if limits.offsets_max is not None:
        assert sum(taken.values()) <= limits.offsets_max
    if limits.bytes_max is not None and sum(taken.values()) > 1:
        # By estimate, at most one record beyond; each partition's size is rounded to whole bytes.
        one_more = max(per_offset.values()) + 2 * len(end)
        assert sum(taken[p] * per_offset[p] for p in taken) <= limits.bytes_max + one_more


@given(
    logs, st.builds(lambda o, b: TriggerLimits(offsets_max=o, bytes_max=b), st.integers(1, 50), st.integers(1, 5000))
)
@settings(max_examples=30)
def test_batch_after_batch_reaches_the_end(
    found: dict[TopicPartition, tuple[int, int, float]], limits: TriggerLimits
) -> None:
    start = {p: first for p, (first, _, _) in found.items()}
    latest = {p: first + max(0, lag) % 12 for p, (first, lag, _) in found.items()}
    per_offset = {p: density for p, (_, _, density) in found.items()}
    for _ in range(sum(latest.values()) - sum(start.values())):
        start = admitted(limits, start, latest, per_offset)
    assert start == latest


def test_without_limits_everything_is_read() -> None:
    assert admitted(TriggerLimits(), at(1, 2), at(9, 9), {}) == at(9, 9)


def test_shares_go_by_lag_and_the_small_are_not_left_out() -> None:
    """The figures of a test that Spark's own connector has."""
    assert admitted(TriggerLimits(offsets_max=10), at(0, 0, 0), at(101, 11, 1), {}) == at(8, 1, 1)


def test_partitions_without_a_share_take_turns() -> None:
    limits = TriggerLimits(offsets_max=2)
    served: set[TopicPartition] = set()
    for begin in range(0, 200, 2):
        start = at(begin, 0, 0, 0)
        end = admitted(limits, start, at(begin + 10**6, 1, 1, 1), {})
        assert sum(end.values()) - sum(start.values()) == 2
        served |= {p for p in end if end[p] > start[p]}
    assert served == set(at(0, 0, 0, 0))


def test_the_same_question_has_the_same_answer() -> None:
    asked = TriggerLimits(offsets_max=2), at(5, 5, 5, 5), at(9, 9, 9, 9), {}
    assert admitted(*asked) == admitted(*asked)


def test_bytes_are_estimated_by_partition() -> None:
    per_offset = {("t", 0): 1000.0, ("t", 1): 10.0}
    assert admitted(TriggerLimits(bytes_max=50_500), at(0, 0), at(100, 100), per_offset) == at(50, 50)


def test_the_stricter_of_bytes_and_offsets_decides() -> None:
    per_offset = {("t", 0): 100.0}
    assert admitted(TriggerLimits(offsets_max=10, bytes_max=500), at(0), at(100), per_offset) == at(5)
    assert admitted(TriggerLimits(offsets_max=3, bytes_max=500), at(0), at(100), per_offset) == at(3)


def test_a_record_larger_than_the_limit_is_read_alone() -> None:
    assert admitted(TriggerLimits(bytes_max=10), at(0), at(100), {("t", 0): 1e6}) == at(1)


def test_a_log_that_went_back_is_not_hidden() -> None:
    assert admitted(TriggerLimits(offsets_max=1), at(10, 0), at(4, 9), {}) == at(4, 1)


def test_a_partition_whose_start_is_unknown_waits() -> None:
    assert admitted(TriggerLimits(), at(3), at(9, 9), {}) == at(9)


def test_a_partition_that_vanished_is_left_out() -> None:
    assert admitted(TriggerLimits(offsets_max=100), at(3, 4), at(9), {}) == at(9)


def test_the_first_trigger_does_not_wait() -> None:
    assert not TriggerPace().waits(TriggerLimits(offsets_min=100, trigger_delay_max_ms=1000), at(0), at(1), 0)


def test_later_triggers_wait_for_enough_records_or_for_the_delay() -> None:
    pace, limits = TriggerPace(), TriggerLimits(offsets_min=100, trigger_delay_max_ms=1000)
    pace.waits(limits, at(0), at(0), 5000)
    assert pace.waits(limits, at(0, 0), at(49, 50), 5999)
    assert not pace.waits(limits, at(0, 0), at(50, 50), 5999)
    assert pace.waits(limits, at(0, 0), at(1, 0), 6998)
    assert not pace.waits(limits, at(0, 0), at(1, 0), 6999)


def test_without_a_minimum_nothing_waits() -> None:
    pace = TriggerPace()
    assert not any(pace.waits(TriggerLimits(), at(0), at(0), now) for now in (0, 1))


def test_available_now_waits_for_nothing() -> None:
    pace, limits = TriggerPace(), TriggerLimits(offsets_min=100, trigger_delay_max_ms=10**9)
    assert not any(pace.waits(limits, at(0), at(1), now, available_now=True) for now in (0, 1, 2))


def test_available_now_ends_at_its_target_even_if_the_log_grows_or_shrinks() -> None:
    assert within_target(at(9, 3, 5, 7), {("t", 0): 5, ("t", 1): 5, ("t", 2): 5, ("gone", 0): 5}) == at(5, 3, 5)


@pytest.mark.parametrize(
    ("given_options", "expected"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "7"}, ReadMaxRows(7)),
        ({"maxBytesPerTrigger": "1k"}, ReadMaxBytes(1024)),
        ({"minOffsetsPerTrigger": "3"}, ReadMinRows(3)),
        ({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "7", "maxBytesPerTrigger": "1k"}, ReadMaxRows(7)),
    ],
    ids=["none", "offsets", "bytes", "minimum", "all"],
)
def test_the_limit_that_spark_is_told_keeps_all_of_ours(given_options: dict[str, str], expected: ReadLimit) -> None:
    limits = TriggerLimits.of(options(streaming=True, **given_options))
    told = default_read_limit(limits)
    assert (type(told), told) == (type(expected), expected)
    if given_options:
        assert under(limits, told) == limits


def test_what_spark_asks_for_overrules_or_tightens() -> None:
    ours = TriggerLimits(offsets_max=10, bytes_max=100, offsets_min=5, trigger_delay_max_ms=9)
    assert under(ours, ReadAllAvailable()) == TriggerLimits()
    assert under(ours, ReadMaxRows(4)).offsets_max == 4
    assert under(ours, ReadMaxRows(40)).offsets_max == 10
    assert under(ours, ReadMaxBytes(4)).bytes_max == 4
    assert under(ours, ReadMinRows(4)).offsets_min == 4
    assert under(ours, ReadMaxFiles(4)) == ours
