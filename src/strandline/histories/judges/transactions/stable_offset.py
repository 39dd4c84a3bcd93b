"""TXN-TI3: the last stable offset of each replica is what its own bytes and its high watermark say: where the first
transaction begins that is open or ended by a marker above the high watermark, but not below the log start."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions


class StableOffset(TransactionJudge):
    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        replica = place.replica
        high_watermark, start = replica.high_watermark, replica.log.log_start_offset
        first = known.first_unstable(high_watermark)
        stable = high_watermark if first is None else min(high_watermark, max(first, start))
        if replica.last_stable_offset > stable:
            raise Violation(
                f"{place}: stable to {replica.last_stable_offset}, and its bytes say {stable} (high watermark {high_watermark})"
            )
        if replica.last_stable_offset < min(start, high_watermark):
            raise Violation(f"{place}: stable to {replica.last_stable_offset}, and the log starts at {start}")
