"""The scenarios of the quorum: importing this package fills `tests.sim.scenario.SCENARIOS`.

Always true: a seed picks the same scenario for as long as none is put before it; new ones go to the end.
"""

from __future__ import annotations

from tests.sim.scenarios import elections, membership, partitions, snapshots, storage, timing
from tests.sim.scenarios import failover, replica_links, replica_disks, moves  # isort: skip

__all__ = ["elections", "membership", "partitions", "snapshots", "storage", "timing"]
