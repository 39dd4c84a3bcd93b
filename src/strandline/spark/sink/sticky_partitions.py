"""Where rows without a key go: to one partition until it has had about a batch's worth, then to the next (KIP-794).

The rows of one call are cut into turns of equal size, so that no turn leaves a small batch behind. Each task begins with a
partition of its own choice, so that many tasks together load all partitions alike.
Always true: partitions have their turns in order, and a turn has at most `turn_bytes` and one row more.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StickyPartitions:
    __slots__ = ("_count", "_had_bytes", "_partition", "_turn_bytes")

    def __init__(self, partitions_count: int, turn_bytes: int, randomness: random.Random) -> None:
        self._count = partitions_count
        self._turn_bytes = turn_bytes
        self._partition = randomness.randrange(partitions_count)
        self._had_bytes = 0
        """What the partition whose turn it is got in earlier calls."""

    def partitions_for(self, sizes_bytes: NDArray[np.int64]) -> NDArray[np.int32]:
        """One partition for each of these rows, which follow those of the last call."""
        ends = np.cumsum(sizes_bytes, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        turns = -(-total // self._turn_bytes)
        if turns <= 1:
            chosen = np.full(len(ends), self._partition, dtype=np.int32)
            self._had_bytes += total
            if 2 * self._had_bytes >= self._turn_bytes:
                self._pass(1)
            return chosen
        # A row belongs to the turn in which it ends.
        turn_of = np.minimum((ends - 1) // -(-total // turns), turns - 1)
        chosen = ((self._partition + turn_of) % self._count).astype(np.int32)
        self._pass(turns)
        return chosen

    def _pass(self, turns: int) -> None:
        self._partition = (self._partition + turns) % self._count
        self._had_bytes = 0
