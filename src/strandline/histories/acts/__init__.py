"""The acts of histories: importing this package fills `ACTS`.

Always true: a seed begins with the same act for as long as none is put before it; new ones go to the end.
"""

from __future__ import annotations

from strandline.histories.acts import (
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
)
from strandline.histories.acts.act import ACTS

__all__ = [
    "ACTS",
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
]
