"""Rows without a key: turns of about a batch, all partitions alike."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.spark.sink.sticky_partitions import StickyPartitions


def sizes(count: int, size: int = 100):
    return np.full(count, size, dtype=np.int64)


def turns(partitions) -> list[tuple[int, int]]:
    """Each partition that had a turn, and of how many rows."""
    return [(int(partition), len(list(rows))) for partition, rows in groupby(partitions)]


def test_a_large_call_is_cut_into_equal_turns_of_partitions_in_order() -> None:
    sticky = StickyPartitions(4, 1000, random.Random(1))
    chosen = turns(sticky.partitions_for(sizes(25)))
    first = chosen[0][0]
    assert [partition for partition, _ in chosen] == [(first + turn) % 4 for turn in range(3)]
    assert sorted(count for _, count in chosen) == [8, 8, 9]


def test_small_calls_stay_with_a_partition_until_it_has_had_half_a_turn() -> None:
    sticky = StickyPartitions(3, 1000, random.Random(1))
    chosen = [turns(sticky.partitions_for(sizes(2)))[0][0] for _ in range(9)]
    first = chosen[0]
    assert chosen == [first] * 3 + [(first + 1) % 3] * 3 + [(first + 2) % 3] * 3


def test_tasks_begin_anywhere() -> None:
    begun = Counter(
        int(StickyPartitions(4, 1000, random.Random(seed)).partitions_for(sizes(1))[0]) for seed in range(400)
    )
    assert all(60 < begun[partition] < 140 for partition in range(4))


@pytest.mark.parametrize("rows_per_call", [1_000, 37, 3])
def test_the_load_is_even_in_the_long_run(rows_per_call: int) -> None:
    sticky = StickyPartitions(7, 100 * rows_per_call * 6 // 10, random.Random(1))
    had: Counter[int] = Counter()
    for _ in range(70):
        had.update(sticky.partitions_for(sizes(rows_per_call)).tolist())
    assert max(had.values()) / min(had.values()) < 1.1


@given(st.lists(st.lists(st.integers(1, 900), max_size=60), max_size=8), st.integers(1, 9), st.integers(900, 4_000))
def test_every_row_has_a_partition_and_no_turn_passes_its_bytes(calls, count, turn_bytes) -> None:
    sticky = StickyPartitions(count, turn_bytes, random.Random(1))
    for call in calls:
        chosen = sticky.partitions_for(np.array(call, dtype=np.int64))
        assert len(chosen) == len(call)
        assert all(0 <= partition < count for partition in chosen)
        if count > 3:  # with fewer, turns of the same partition may follow each other
            position = 0
            for _, rows in turns(chosen):
                assert sum(call[position : position + rows]) < turn_bytes + max(call)
                position += rows
