"""TXN-TI10: the offsets of the copiers, as their coordinator has them, are those of the newest record of a transaction
that has its commit marker: not of one that is open, nor of one that is aborted."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.offset_records import committed_offsets
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.histories.transactions.plan import COPIERS, LEDGER
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS

NONE = -1


class OffsetsFollowMarkers(TransactionJudge):
    def __init__(self) -> None:
        self._committed: dict[tuple[int, Key], tuple[PartitionTransactions, int, dict[TopicPartition, int]]] = {}
        """Of each replica what is known of its log, how many transactions had ended, and what they had committed."""

    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        if place.name != (CONSUMER_OFFSETS, seen.offsets_partition(COPIERS)) or not place.replica.leads:
            return
        groups = seen.groups(place.node_id, place.name[1])
        if groups is None:
            return
        committed = self._offsets(place, known)
        for index in range(seen.partitions_of(LEDGER)):
            value = groups.offsets.get(COPIERS, LEDGER, index)
            found, expected = NONE if value is None else value.offset, committed.get((LEDGER, index), NONE)
            if found != expected:
                raise Violation(
                    f"{place}: has {found} for {LEDGER}-{index}, and committed transactions have {expected} ({NONE}: none)"
                )

    def _offsets(self, place: Place, known: PartitionTransactions) -> dict[TopicPartition, int]:
        where = (place.node_id, place.key)
        before = self._committed.get(where)
        if before is not None and before[0] is known and before[1] == len(known.ended):
            return before[2]
        committed = committed_offsets(known, COPIERS)
        self._committed[where] = (known, len(known.ended), committed)
        return committed
