"""TXN-TI14, TXN-P11: the index of aborted transactions on the disk says what the batches say, in the segment of each
marker and in the order of the markers; commits are not in it."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.log.txn_index import ENTRY


class AbortedIndexMatchesLog(TransactionJudge):
    def __init__(self) -> None:
        self._looked_at: dict[tuple[int, object], tuple[PartitionTransactions, int]] = {}
        """Of each replica what was known, and how many transactions had ended, at the last look."""

    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        mark = (known, len(known.ended))
        if self._looked_at.get((place.node_id, place.key)) == mark or place.replica.is_offline:
            return
        self._looked_at[place.node_id, place.key] = mark
        aborted = [each for each in known.ended if not each.is_committed]
        for base, end, data in seen.aborted_index(place):
            expected = [
                (0, each.producer_id, each.first_offset, each.marker.last_offset, each.stable_then)
                for each in aborted
                if each.marker is not None and base <= each.marker.base_offset < end
            ]
            whole = len(data) - len(data) % ENTRY.size
            found = list(ENTRY.iter_unpack(data[:whole]))
            if found != expected or whole != len(data):
                raise Violation(f"{place}: the index from {base} on has {found}, and the log has {expected}")
