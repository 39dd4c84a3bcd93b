"""What a coordinator counts: loads, batches, records; of groups also offset commits and expired offsets.

Always true: numbers only rise, and belong to the node, whichever partitions it has led.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CoordinatorStats:
    loads: int = 0
    failed_loads: int = 0
    loaded_records: int = 0
    load_s: float = 0.0
    """All loads together."""
    load_s_max: float = 0.0
    batches: int = 0
    """Appended to its topic."""
    records: int = 0
    timeouts: int = 0
    """Batches that were not committed in time."""

    def loaded(self, records: int, took_s: float) -> None:
        self.loads += 1
        self.loaded_records += records
        self.load_s += took_s
        self.load_s_max = max(self.load_s_max, took_s)


@dataclass(slots=True)
class GroupCoordinatorStats(CoordinatorStats):
    offset_commits: int = 0
    """Offsets, not requests."""
    offset_deletions: int = 0
    offset_expirations: int = 0
    rebalances: int = 0
    """Generations and group epochs that were written down."""
