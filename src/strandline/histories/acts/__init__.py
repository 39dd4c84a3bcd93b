"""The acts of histories: importing this package fills `ACTS`.

Always true: which act a seed begins with follows from all there are and what they weigh; one more, and it is another.
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
