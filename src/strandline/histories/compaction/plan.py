"""The compacted topic of a setting, and the brokers' configuration with which there is something to clean within a
minute.

Always true: it is drawn from a stream of its own, so that a seed's cluster is the same whether or not there is such a
topic.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SHARE = 0.22
"""So many of all histories have a compacted topic."""
COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    keys: int
    segment_bytes: int
    dirty_ratio: float
    delete_retention_ms: int
    backoff_ms: int
    bytes_per_second: int
    """Slow enough that a cleaning takes a while."""

    @property
    def config(self) -> dict[str, str]:
        """Of the brokers."""
        return {
            "log.cleaner.backoff.ms": str(self.backoff_ms),
            "log.cleaner.io.max.bytes.per.second": str(self.bytes_per_second),
        }

    @property
    def topic_configs(self) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": str(self.dirty_ratio),
            "delete.retention.ms": str(self.delete_retention_ms),
            "internal.segment.bytes": str(self.segment_bytes),
        }

    def __str__(self) -> str:
        return f"compacted topic of {self.keys} keys"


def draw(seed: int) -> CompactionPlan | None:
    """The seed's, if it has one."""
    chance = random.Random(f"{seed}/compaction")
    if chance.random() >= SHARE:
        return None
    return CompactionPlan(
        chance.choice((4, 8, 16)),
        chance.choice((1_024, 2_048)),
        chance.choice((0.2, 0.5)),
        chance.choice((500, 5_000)),
        chance.choice((3_000, 6_000)),
        chance.choice((5_000, 20_000, 200_000)),
    )
