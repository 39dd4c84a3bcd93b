"""The nemeses of histories: importing this package fills `NEMESES`.

Always true: which nemesis a seed begins with follows from all there are and what they weigh; one more, and it is
another.
"""

from __future__ import annotations

from strandline.histories.nemeses import (
    compaction,
    coordinators,
    elections,
    failover,
    group_members,
    handovers,
    late_isr,
    links,
    membership,
    moves,
    partitions,
    rot,
    snapshots,
    storage,
    timing,
    transactions,
)
from strandline.histories.nemeses.nemesis import NEMESES

__all__ = [
    "NEMESES",
    "compaction",
    "coordinators",
    "elections",
    "failover",
    "group_members",
    "handovers",
    "late_isr",
    "links",
    "membership",
    "moves",
    "partitions",
    "rot",
    "snapshots",
    "storage",
    "timing",
    "transactions",
]
