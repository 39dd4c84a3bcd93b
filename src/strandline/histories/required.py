"""What a budget of seeds must have exercised, so that "0 failed" says something.

Always true: a fault kind that the plan knows is required by being known; it need not be listed.
"""

from __future__ import annotations

from strandline.histories.coverage import COMPACTION, FAULT, GROUP, QUORUM, REPLICA, SNAPSHOT, Coverage
from strandline.histories.fault_injector import KINDS
from strandline.histories.history import FAULTS, OPERATIONS, VIRTUAL_S
from strandline.histories.tally import HistoryMinima

TRANSITIONS = (
    (QUORUM, "election"),
    (REPLICA, "election"),
    (REPLICA, "truncation"),
    (REPLICA, "isr shrink"),
    (REPLICA, "isr expand"),
    (SNAPSHOT, "fetched"),
    (GROUP, "rebalance"),
    (GROUP, "coordinator change"),
    (COMPACTION, "cleaning finished"),
    (COMPACTION, "cleaning cut short"),
)


def required() -> list[tuple[str, str]]:
    return [*((FAULT, kind) for kind in KINDS), *TRANSITIONS]


def too_rare(coverage: Coverage, times_min: int) -> list[tuple[str, str, int]]:
    """Category, name and how often, of what occurred less often than it must."""
    return [(*each, coverage[each]) for each in required() if coverage[each] < times_min]


def too_small(least: HistoryMinima | None) -> list[str]:
    """What the least history lacks, in words."""
    if least is None:
        return []
    floors = (
        ("virtual seconds", least.virtual_s, VIRTUAL_S),
        ("faults", least.faults, FAULTS),
        ("operations", least.operations, OPERATIONS),
    )
    return [f"a history of {found:g} {what}, fewer than {floor:g}" for what, found, floor in floors if found < floor]
