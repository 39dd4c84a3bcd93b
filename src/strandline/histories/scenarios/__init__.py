"""The scenarios of the quorum and of the data plane: importing this package fills `strandline.histories.scenario.SCENARIOS`.

Always true: a seed picks the same scenario for as long as none is put before it; new ones go to the end.
"""

from __future__ import annotations

# isort: off  (their order is that in which seeds walk through them)
from strandline.histories.scenarios import (
    elections,
    failover,
    membership,
    moves,
    partitions,
    replica_disks,
    replica_links,
    snapshots,
    storage,
    timing,
)

# isort: on

__all__ = [
    "elections",
    "failover",
    "membership",
    "moves",
    "partitions",
    "replica_disks",
    "replica_links",
    "snapshots",
    "storage",
    "timing",
]
