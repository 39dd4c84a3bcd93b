"""Which segments are cleaned into one."""

from __future__ import annotations

from strandline.log.compaction.grouping import grouped
from strandline.log.compaction.reading import SourceSegment


def source(base_offset: int, end_offset: int, size: int = 10, index: int = 8, times: int = 12) -> SourceSegment:
    return SourceSegment(base_offset, end_offset, end_offset, size, index, times)


def bases(groups: list[list[SourceSegment]]) -> list[list[int]]:
    return [[one.base_offset for one in group] for group in groups]


def test_as_many_as_fit_by_size() -> None:
    sources = [source(i, i + 1, size) for i, size in enumerate((10, 10, 10, 25, 30, 31, 5, 5))]
    assert bases(grouped(sources, 30, 1000)) == [[0, 1, 2], [3], [4], [5], [6, 7]]


def test_as_many_as_fit_by_either_index() -> None:
    assert bases(grouped([source(i, i + 1, index=40) for i in range(3)], 1000, 80)) == [[0, 1], [2]]
    assert bases(grouped([source(i, i + 1, times=48) for i in range(3)], 1000, 96)) == [[0, 1], [2]]


def test_offsets_stay_within_31_bits_of_the_first() -> None:
    sources = [source(0, 5), source(5, 2**31), source(2**31, 2**31 + 9), source(2**31 + 9, 2**32)]
    assert bases(grouped(sources, 1000, 1000)) == [[0, 5], [2**31, 2**31 + 9]]


def test_none() -> None:
    assert grouped([], 1, 1) == []
