from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.histories.fault_numbers import NUMBERS_MAX, all_but, read, written


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3", {3}), ("3,5", {3, 5}), ("1-4,6", {1, 2, 3, 4, 6}), (" 2 , 2-3", {2, 3}), ("9998-", {9998, 9999})],
)
def test_as_typed(text: str, numbers: set[int]) -> None:
    assert read(text) == numbers


@pytest.mark.parametrize("text", ["", "x", "3,", "-4", "1--2", "5-4", "1.5", "99999"])
def test_what_can_not_be_read_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no fault number|ends before it begins"):
        read(text)


@given(st.sets(st.integers(0, 60) | st.integers(NUMBERS_MAX - 3, NUMBERS_MAX - 1), min_size=1))
def test_what_is_written_is_read(numbers: set[int]) -> None:
    assert read(written(numbers)) == numbers


def test_all_but_a_few() -> None:
    assert written(all_but([3, 8])) == "1-2,4-7,9-"
    assert read("1-") == all_but([])
