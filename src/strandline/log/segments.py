"""The segments of one log: the last one is written, the others are closed.

Always true: there is at least one; they stand in the order of their offsets, and each ends at or before the offset where the next
one begins. Whatever the log does with them (roll, cut, drop, replace) is one step here, between two reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from strandline.log.segment import Segment


class Segments(Sequence[Segment]):
    __slots__ = ("active", "all", "bases")

    def __init__(self, segments: list[Segment]) -> None:
        self._set(segments)

    all: list[Segment]
    """A new list wherever segments go, so that what walks along the old one goes on with it."""
    bases: list[int]
    """The base offset of each."""
    active: Segment
    """The last one."""

    def _set(self, segments: list[Segment]) -> None:
        assert segments, "a log has at least one segment"
        self.all = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.all)

    @overload
    def __getitem__(self, index: int) -> Segment: ...

    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...

    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self.all[index]

    def position_of(self, offset: int) -> int:
        """Which segment holds `offset`, or would: the first one if it is below them all."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    # Changes

    def add(self, segment: Segment) -> None:
        """Let a new segment be the active one."""
        self.all.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    def replace_active(self, segment: Segment) -> Segment:
        """Let a new segment take the place of the active one, which is empty and returned."""
        replaced = self.all.pop()
        self.bases.pop()
        self.add(segment)
        return replaced

    def cut(self, offset: int) -> list[Segment]:
        """Take out those that begin above `offset`, which the first one does not; they are returned."""
        kept = bisect_right(self.bases, offset)
        gone = self.all[kept:]
        self._set(self.all[:kept])
        return gone

    def begin_anew(self, segment: Segment) -> None:
        """Let one new segment take the place of all."""
        self._set([segment])

    def drop_oldest(self, count: int) -> list[Segment]:
        """Take out the oldest `count`, which are not all; they are returned."""
        gone = self.all[:count]
        self._set(self.all[count:])
        return gone

    def replace(self, first: int, end: int, new: list[Segment]) -> list[Segment]:
        """Let `new` take the place of the closed segments from position `first` to before `end`, which are returned."""
        old = self.all[first:end]
        self._set([*self.all[:first], *new, *self.all[end:]])
        return old

    def check_invariants(self) -> None:
        assert self.active is self.all[-1], "the active segment is not the last one"
        assert self.bases == [segment.base_offset for segment in self.all], f"base offsets {self.bases}"
        for i, following in enumerate(self.bases[1:]):
            segment = self.all[i]
            assert segment.base_offset < following, f"segment {following} follows {segment.base_offset}"
            assert segment.next_offset <= following, f"segment {segment.base_offset} ends at {segment.next_offset}"
