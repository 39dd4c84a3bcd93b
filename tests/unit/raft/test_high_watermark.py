"""The majority's end, and nothing before the leader's own epoch (D7)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.raft.high_watermark import advance


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([5], 5),
        ([5, 4], 4),
        ([5, 4, 3], 4),
        ([5, 4, None], 4),
        ([5, None, None], None),
        ([9, 8, 7, 6], 7),
        ([9, 8, 7, 6, None], 7),
    ],
)
def test_d7_the_end_that_a_majority_has(ends: list[int | None], expected: int | None) -> None:
    assert advance(None, ends, 0) == expected


def test_d7_only_beyond_the_start_of_the_epoch() -> None:
    assert advance(None, [7, 7, 7], 7) is None
    assert advance(None, [8, 8, 7], 7) == 8
    assert advance(None, [8, 7, 7], 7) is None


@example([3, 3, 3], 5, 0)  # fewer voters have it than before: the voters changed, or a disk was lost
@given(
    st.lists(st.integers(0, 20) | st.none(), min_size=1, max_size=7), st.none() | st.integers(0, 20), st.integers(0, 20)
)
def test_d7_it_never_falls_and_a_majority_has_it(ends: list[int | None], before: int | None, start: int) -> None:
    after = advance(before, ends, start)
    assert before is None or (after is not None and after >= before)
    if after is not None and after != before:
        assert sum(end is not None and end >= after for end in ends) > len(ends) / 2
        assert after > start
