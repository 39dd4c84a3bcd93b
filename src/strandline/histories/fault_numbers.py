"""Sets of fault numbers as they are typed: `3,5`, `1-4,6,8-` (from 8 on).

Always true: what `written` writes, `read` reads as the same set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

NUMBERS_MAX = 10_000
"""Faults count from 1, and no history has so many: an open end ends here."""


def read(text: str) -> frozenset[int]:
    """ValueError says, in words, which part can't be read."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:(-)(\d{1,4})?)?\s*", part)
        if match is None:
            raise ValueError(f"'{part.strip()}' is no fault number; write them as 3,5 or 1-4,6,8-")
        first = int(match[1])
        last = first if match[2] is None else NUMBERS_MAX - 1 if match[3] is None else int(match[3])
        if last < first:
            raise ValueError(f"'{part.strip()}' ends before it begins")
        found.update(range(first, last + 1))
    return frozenset(found)


def written(numbers: Iterable[int]) -> str:
    parts: list[str] = []
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    for first, last in runs:
        if last == NUMBERS_MAX - 1:
            parts.append(f"{first}-")
        else:
            parts.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(parts)


def all_but(kept: Iterable[int]) -> frozenset[int]:
    """Every number that a fault may have, without those that are kept."""
    return frozenset(range(1, NUMBERS_MAX)).difference(kept)
