"""What the rounds of a failover say: medians for each signal and case, targets, and the table that shows them.

Always true: the target is on the producer's gap, because librdkafka's consumer looks for a lost leader only once a second; a
broken promise in any round misses it, however short the gap.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.table import Table

from bench.clusters import TITLES, Name
from bench.steady_load import Fate

Signal = Literal["KILL", "TERM", "STOP"]
SIGNALS: Final[tuple[Signal, ...]] = ("KILL", "TERM", "STOP")
NO_SIGNAL: Final = None
CASES = (False, True)
"""Is the leader the active controller too?"""
TARGETS_MS: Mapping[tuple[Signal, bool], float] = {
    ("KILL", False): 500,
    ("KILL", True): 1000,
    ("TERM", False): 150,
    ("TERM", True): 150,
    ("STOP", False): 4000,
    ("STOP", True): 6000,
}


@dataclass(frozen=True, slots=True)
class Round:
    """Gaps that began while the node was away, and those that began after it was back."""

    cluster: Name
    signal: Signal | None
    also_controller: bool
    node: int
    produce_gap_ms: float
    consume_gap_ms: float
    produce_return_gap_ms: float
    consume_return_gap_ms: float
    fate: Fate


@dataclass(frozen=True, slots=True)
class Summary:
    """All rounds of one cluster, signal and case: medians of the gaps, sums of the records."""

    cluster: Name
    signal: Signal | None
    also_controller: bool
    rounds: int
    produce_gap_ms: float
    produce_gap_ms_max: float
    consume_gap_ms: float
    produce_return_gap_ms: float
    consume_return_gap_ms: float
    fate: Fate

    @property
    def target_ms(self) -> float | None:
        return None if self.signal is None else TARGETS_MS[self.signal, self.also_controller]

    @property
    def holds(self) -> bool | None:
        """None where nothing is promised."""
        if self.target_ms is None or self.cluster != "ours":
            return None
        # A node that stood still is back by the same token: what its waking up costs is part of the pause.
        gap_ms = max(self.produce_gap_ms, self.produce_return_gap_ms) if self.signal == "STOP" else self.produce_gap_ms
        broken = self.fate.lost + self.fate.duplicated + self.fate.moved + self.fate.out_of_order
        return gap_ms <= self.target_ms and not broken


def summarize(rounds: Sequence[Round]) -> list[Summary]:
    """In the order of the signals, one case after the other."""
    groups: dict[tuple[Name, Signal | None, bool], list[Round]] = {}
    for each in rounds:
        groups.setdefault((each.cluster, each.signal, each.also_controller), []).append(each)
    summaries = [_summary(group) for group in groups.values()]
    names, order = list(TITLES), [NO_SIGNAL, *SIGNALS]
    return sorted(
        summaries, key=lambda each: (names.index(each.cluster), order.index(each.signal), each.also_controller)
    )


def _summary(rounds: Sequence[Round]) -> Summary:
    def median(key: str) -> float:
        values: list[float] = [getattr(each, key) for each in rounds]
        return statistics.median(values)

    fates = [each.fate for each in rounds]
    return Summary(
        cluster=rounds[0].cluster,
        signal=rounds[0].signal,
        also_controller=rounds[0].also_controller,
        rounds=len(rounds),
        produce_gap_ms=median("produce_gap_ms"),
        produce_gap_ms_max=max(each.produce_gap_ms for each in rounds),
        consume_gap_ms=median("consume_gap_ms"),
        produce_return_gap_ms=median("produce_return_gap_ms"),
        consume_return_gap_ms=median("consume_return_gap_ms"),
        fate=Fate(
            acknowledged=sum(fate.acknowledged for fate in fates),
            failed=sum(fate.failed for fate in fates),
            lost=sum(fate.lost for fate in fates),
            duplicated=sum(fate.duplicated for fate in fates),
            moved=sum(fate.moved for fate in fates),
            out_of_order=sum(fate.out_of_order for fate in fates),
        ),
    )


def table(summaries: Sequence[Summary]) -> Table:
    rounds = max((summary.rounds for summary in summaries), default=0)
    result = Table(title=f"longest gap, ms: medians of {rounds} rounds")
    for heading in ("", "signal", "leader is\ncontroller"):
        result.add_column(heading)
    for heading in ("producer", "worst", "consumer", "node back:\nproducer", "consumer"):
        result.add_column(heading, justify="right")
    for heading in ("acknowledged", "failed", "lost", "dupli-\ncated", "moved", "out of\norder", "target"):
        result.add_column(heading, justify="right")
    for summary in summaries:
        gaps = (
            summary.produce_gap_ms,
            summary.produce_gap_ms_max,
            summary.consume_gap_ms,
            summary.produce_return_gap_ms,
            summary.consume_return_gap_ms,
        )
        fate = summary.fate
        counts = (fate.acknowledged, fate.failed, fate.lost, fate.duplicated, fate.moved, fate.out_of_order)
        result.add_row(
            TITLES[summary.cluster],
            summary.signal or "none",
            "" if summary.signal is None else "yes" if summary.also_controller else "no",
            *(f"{gap:,.0f}" for gap in gaps),
            *(f"{count:,}" for count in counts),
            _verdict(summary),
        )
    return result


def _verdict(summary: Summary) -> str:
    if summary.holds is None:
        return ""
    return f"<= {summary.target_ms:g} " + ("[green]holds[/]" if summary.holds else "[red]missed[/]")
