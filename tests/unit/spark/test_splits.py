"""From offset ranges to splits."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.spark.splits import OffsetRange, Split, bytes_per_offset, splits
from tests.unit.spark.memory_cluster_view import topic_id

ranges = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.tuples(st.integers(0, 10**12), st.integers(-5, 400))
).map(lambda found: [OffsetRange(t, topic_id(1), p, start, start + size) for (t, p), (start, size) in found.items()])
densities = st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.floats(0.001, 1e6))


def one(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange("t", topic_id(1), partition, start, end)


def cuts(found: list[Split]) -> list[tuple[int, int, int]]:
    return [(s.partition, s.start, s.end) for s in found]


@given(ranges, densities, st.none() | st.integers(1, 300), st.none() | st.integers(1, 50))
def test_splits_cover_each_range_once_and_keep_the_promises(
    whole: list[OffsetRange],
    per_offset: dict[tuple[str, int], float],
    partitions_min: int | None,
    records_max: int | None,
) -> None:
    found = splits(whole, per_offset, partitions_min=partitions_min, records_per_partition_max=records_max)
    for r in whole:
        mine = [s for s in found if (s.topic, s.partition) == (r.topic, r.partition)]
        assert all(s.start < s.end for s in mine)
        if r.offsets_count > 0:
            assert (mine[0].start, mine[-1].end) == (r.start, r.end)
            assert all(a.end == b.start for a, b in itertools.pairwise(mine))
        else:
            assert not mine
    if records_max is not None:
        assert all(s.end - s.start <= records_max for s in found)
    if partitions_min is not None:
        assert len(found) >= min(partitions_min, sum(max(0, r.offsets_count) for r in whole))
    assert found == sorted(found)


@given(ranges, densities, st.integers(1, 300))
def test_more_splits_are_made_only_as_far_as_needed(
    whole: list[OffsetRange], per_offset: dict[tuple[str, int], float], partitions_min: int
) -> None:
    found = splits(whole, per_offset, partitions_min=partitions_min)
    assert len(found) <= max(partitions_min, sum(r.offsets_count > 0 for r in whole))


@given(ranges, densities, st.integers(1, 60))
def test_no_other_way_to_divide_has_a_smaller_largest_split(
    whole: list[OffsetRange], per_offset: dict[tuple[str, int], float], partitions_min: int
) -> None:
    """Taking a split away from one range to give it to another would leave larger splits than there are."""
    parts = Counter((s.topic, s.partition) for s in splits(whole, per_offset, partitions_min=partitions_min))
    there = {(r.topic, r.partition): r for r in whole if r.offsets_count > 0}
    sizes = {p: r.offsets_count * per_offset.get(p, 1.0) for p, r in there.items()}
    largest = max((sizes[p] / parts[p] for p in there if parts[p] < there[p].offsets_count), default=0.0)
    for p in there:
        assert parts[p] == 1 or sizes[p] / (parts[p] - 1) >= largest


def test_without_options_a_partition_is_one_split() -> None:
    assert splits([one(1, 0, 5), one(0, 3, 1_000_000)], {}) == [
        Split("t", topic_id(1), 0, 3, 1_000_000, 999_997),
        Split("t", topic_id(1), 1, 0, 5, 5),
    ]


def test_fewer_than_there_are_partitions_changes_nothing() -> None:
    assert cuts(splits([one(0, 0, 900), one(1, 0, 5), one(2, 0, 5)], {}, partitions_min=2)) == [
        (0, 0, 900),
        (1, 0, 5),
        (2, 0, 5),
    ]


def test_a_huge_partition_is_divided_and_the_tiny_ones_beside_it_are_not() -> None:
    assert cuts(splits([one(0, 0, 900), one(1, 0, 5), one(2, 0, 5)], {}, partitions_min=5)) == [
        (0, 0, 300),
        (0, 300, 600),
        (0, 600, 900),
        (1, 0, 5),
        (2, 0, 5),
    ]


def test_bytes_decide_and_not_offsets() -> None:
    """Partition 0 was compacted: many offsets, few bytes."""
    per_offset = {("t", 0): 0.5, ("t", 1): 1000.0}
    found = splits([one(0, 0, 10_000), one(1, 0, 100)], per_offset, partitions_min=5)
    assert cuts(found) == [(0, 0, 10_000), (1, 0, 25), (1, 25, 50), (1, 50, 75), (1, 75, 100)]
    assert [s.size_bytes_estimate for s in found] == [5000, 25_000, 25_000, 25_000, 25_000]


def test_records_per_partition_come_first_and_then_the_number_of_splits() -> None:
    by_records = splits([one(0, 0, 10)], {}, records_per_partition_max=4)
    assert cuts(by_records) == [(0, 0, 3), (0, 3, 6), (0, 6, 10)]
    both = splits([one(0, 0, 10)], {}, records_per_partition_max=4, partitions_min=5)
    assert cuts(both) == [(0, 0, 2), (0, 2, 4), (0, 4, 6), (0, 6, 8), (0, 8, 10)]


def test_a_split_has_at_least_one_offset() -> None:
    assert cuts(splits([one(0, 7, 9)], {}, partitions_min=10)) == [(0, 7, 8), (0, 8, 9)]


def test_nothing_to_read_gives_no_split() -> None:
    assert splits([], {}, partitions_min=3) == []
    assert splits([one(0, 5, 5), one(1, 9, 3)], {}, partitions_min=3) == []


def test_bytes_per_offset_of_known_logs() -> None:
    known = bytes_per_offset({("t", 0): 1000, ("t", 1): 10}, {("t", 0): 5, ("t", 1): 0}, {("t", 0): 15, ("t", 1): 100})
    assert known == {("t", 0): 100.0, ("t", 1): 0.1}


@pytest.mark.parametrize("hidden", ["size", "emptied log", "zero size"])
def test_an_unknown_partition_is_taken_to_be_as_its_topic(hidden: str) -> None:
    sizes = {("t", 0): 1000, ("t", 1): 3000, ("u", 0): 10}
    earliest = {("t", 0): 0, ("t", 1): 0, ("t", 2): 100 if hidden == "emptied log" else 0, ("u", 0): 0}
    if hidden == "zero size":
        sizes["t", 2] = 0
    found = bytes_per_offset(sizes, earliest, {("t", 0): 10, ("t", 1): 10, ("t", 2): 100, ("u", 0): 10})
    assert found["t", 2] == 200.0
    assert found["u", 0] == 1.0


def test_a_topic_of_which_nothing_is_known_is_taken_to_be_as_all_others() -> None:
    found = bytes_per_offset({("t", 0): 1000}, {("t", 0): 0, ("u", 0): 0}, {("t", 0): 10, ("u", 0): 10})
    assert found["u", 0] == 100.0


def test_if_nothing_is_known_an_offset_is_a_byte() -> None:
    assert bytes_per_offset({}, {("t", 0): 0}, {("t", 0): 10}) == {("t", 0): 1.0}
