"""Seeds chosen by what they exercise: few that meet everything many times, instead of the first so many.

An item is what coverage counts (a fault, a nemesis, a transition, an error code, a part of the setting), and each pair of
a nemesis and a part of the setting. Of the seeds that were played, the next one chosen is always the one that adds most:
an item that was met so far by n of the chosen seeds is worth 1/(n+1), and nothing once it was met often enough. So what
is rare comes first, and nothing is left out that any seed has met.

Always true: the same outcomes give the same choice; a seed that failed is not chosen, since it is a finding.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from strandline.histories.coverage import NEMESIS, SETTING, Coverage
from strandline.histories.outcome import HistoryOutcome

Item = tuple[str, ...]
TIMES = 25
"""Met by so many of the chosen seeds, an item is met often enough."""


def items(coverage: Coverage) -> frozenset[Item]:
    """What a history exercised."""
    nemeses = [name for name, _ in coverage.of(NEMESIS)]
    parts = [name for name, _ in coverage.of(SETTING)]
    pairs = {("nemesis in a setting", nemesis, part) for nemesis, part in product(nemeses, parts)}
    return frozenset({*coverage.keys(), *pairs})


class SeedChoice:
    def __init__(self) -> None:
        self._met: dict[int, frozenset[Item]] = {}

    def add(self, outcome: HistoryOutcome) -> None:
        if not outcome.problems:
            self._met[outcome.seed] = items(outcome.coverage)

    def choose(self, count: int) -> list[int]:
        return sorted(chosen(self._met, count))

    def rarest(self, seeds: Iterable[int], *, below: int) -> list[tuple[Item, int]]:
        """What these seeds meet less often, the pairs left out, though others met it more often."""
        here = Counter(item for seed in seeds for item in self._met[seed])
        everywhere = Counter(item for met in self._met.values() for item in met)
        rare = [
            (item, here[item]) for item in everywhere if len(item) == 2 and here[item] < min(below, everywhere[item])
        ]
        return sorted(rare, key=lambda each: (each[1], each[0]))


def chosen(met: Mapping[int, frozenset[Item]], count: int, times: int = TIMES) -> Iterator[int]:
    """The seeds, the one that adds most first."""
    often: Counter[Item] = Counter()

    def worth(seed: int) -> float:
        return sum(1 / (often[item] + 1) for item in met[seed] if often[item] < times)

    # What a seed adds only falls: the greatest that was worked out before is an upper bound, and most are never worked out again.
    heap = [(-worth(seed), seed) for seed in met]
    heapq.heapify(heap)
    left = min(count, len(met))
    while left:
        _, seed = heapq.heappop(heap)
        now = worth(seed)
        if heap and now < -heap[0][0]:
            heapq.heappush(heap, (-now, seed))
            continue
        often.update(met[seed])
        left -= 1
        yield seed


# The file


def write(seeds: Iterable[int], played: str) -> str:
    """Its text; `played` says of which seeds they were chosen."""
    numbers = list(seeds)
    head = f"# {len(numbers)} seeds, chosen by what they exercise of {played}: strandline sim --choose; see docs/simulator.md.\n"
    return head + "".join(f"{number}\n" for number in numbers)


def read(text: str) -> list[int]:
    """ValueError where a line is no seed."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    found = []
    for number, line in enumerate(lines, 1):
        if (line and not line.isascii()) or (line and not line.isdigit()):
            raise ValueError(f"line {number}: '{line}' is no seed")
        if line:
            found.append(int(line))
    if not found:
        raise ValueError("it names no seed")
    return found
