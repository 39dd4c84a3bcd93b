"""TXN-TI4: once all faults are undone, within the largest timeout and a moment, no transactional id is in a transaction
or prepared, no replica has one open, and everything that is committed is stable."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.transactions.judge import Place
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions

SWEEP_S, MOMENT_S = 10.0, 20.0


def within_s(timeout_s: float) -> float:
    """So long it may take from when the last producer has stopped."""
    return timeout_s + SWEEP_S + MOMENT_S


def hanging(seen: TransactionObservation) -> list[str]:
    found = [f"{tid} is {each.state.label}" for tid, each in seen.states.items() if not each.state.may_expire]
    return found + [what for place, known in seen.places() for what in _at(place, known)]


def _at(place: Place, known: PartitionTransactions) -> Iterable[str]:
    yield from (f"n{place.node_id} has open in {place}: {each}" for each in known.open.values())
    stable, high_watermark = place.replica.last_stable_offset, place.replica.high_watermark
    if stable != high_watermark:
        yield f"n{place.node_id}: {place} is stable to {stable} of {high_watermark}"
