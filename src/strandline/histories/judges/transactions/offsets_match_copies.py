"""TXN-TI10: what a committed transaction of a copier moves the offsets of its group over is what it has copied: exactly
the committed records from where its group was before. So at every moment the offsets are what the copies say."""

from __future__ import annotations

from collections import Counter

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.offset_records import offsets_of
from strandline.histories.transactions.partition_log import LoggedTransaction, TransactionalBatch
from strandline.histories.transactions.plan import COPIERS, COPIES, LEDGER
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS


class OffsetsMatchCopies(TransactionJudge):
    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, int] = {}
        """Of the group, as the transactions that were committed so far say."""
        self._counted: set[tuple[int, int]] = set()
        """The producer ids and first offsets of those: with another leader a marker may come again."""

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        if place.name[0] != CONSUMER_OFFSETS or ended is None or not ended.is_committed:
            return
        if (ended.producer_id, ended.first_offset) in self._counted:
            return
        self._counted.add((ended.producer_id, ended.first_offset))
        copies = _copies(seen, batch.producer_id)
        for key, offset in dict(offsets_of(ended, COPIERS)).items():
            before = self._offsets.get(key, 0)
            self._offsets[key] = offset
            sources = _committed_values(seen, key, before, offset)
            copied = Counter({value: count for value, count in copies.items() if value in _values(seen, key)})
            if copied != sources:
                missing, strange = sorted((sources - copied).elements()), sorted((copied - sources).elements())
                raise Violation(
                    f"{place}: {ended} moves {key[0]}-{key[1]} from {before} to {offset}; missing in the copies are "
                    f"{missing[:3]}, and not among those are {strange[:3]}"
                )


def _copies(seen: TransactionObservation, producer_id: int) -> Counter[bytes]:
    """What the transaction of a copier that is just being committed has copied."""
    decided = seen.decisions[seen.ids[producer_id]]
    found: Counter[bytes] = Counter()
    for name in sorted(decided.partitions):
        log = seen.newest_log(name) if name[0] == COPIES else None
        written = None if log is None else log.newest_of(producer_id)
        if written is not None:
            found.update(value.partition(b">")[0] for _, value in written.values())
    return found


def _committed_values(seen: TransactionObservation, key: TopicPartition, start: int, end: int) -> Counter[bytes]:
    """What is committed of the ledger between two offsets."""
    log = seen.newest_log(key)
    return Counter(
        value
        for each in (() if log is None else log.ended)
        if each.is_committed
        for offset, value in each.values()
        if start <= offset < end
    )


def _values(seen: TransactionObservation, key: TopicPartition) -> set[bytes]:
    """All that stands in a partition of the ledger."""
    assert key[0] == LEDGER, "copiers read nothing else"
    log = seen.newest_log(key)
    transactions = () if log is None else (*log.ended, *log.open.values())
    return {value for each in transactions for _, value in each.values()}
