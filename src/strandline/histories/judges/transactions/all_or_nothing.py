"""TXN-TI1: of each transaction all values are committed or none, on all partitions together; as its client was
answered, and none if nobody asked for a commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from strandline.histories.transactions.history import ToldEnd, TransactionHistory
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.ids import TopicPartition

NAME = "all-or-nothing"


def judge(history: TransactionHistory, logs: Mapping[TopicPartition, PartitionTransactions]) -> Iterable[str]:
    stored = Counter(
        (key, value)
        for key, log in logs.items()
        for each in log.ended
        if each.is_committed
        for _, value in each.values()
    )
    read = Counter((key, value) for key, values in history.final.items() for value in values)
    if stored != read:
        yield f"a read_committed reader did not read what is committed: {sorted((stored - read) + (read - stored))[:3]}"
    for each in history.transactions:
        wanted = [(key, value) for value, key in each.values.items()]
        there = [read[one] for one in wanted]
        if any(count > 1 for count in there):
            yield f"{each} has values twice: {_of(wanted, there, lambda count: count > 1)}"
        if any(there) and not all(there):
            yield f"{each} is torn: {_of(wanted, there, bool)} are committed, {_of(wanted, there, lambda n: not n)} not"
        elif each.told is ToldEnd.COMMITTED and not all(there):
            yield f"{each} was committed, and nothing of it can be read"
        elif any(there) and each.told is ToldEnd.ABORTED:
            yield f"{each} was aborted, and can be read"
        elif any(there) and not each.asked_to_commit:
            yield f"{each} can be read, and nobody asked to commit it"


def _of(wanted: list[tuple[TopicPartition, bytes]], counts: list[int], holds: object) -> list[str]:
    assert callable(holds)
    return [f"{value!r} in {key[0]}-{key[1]}" for (key, value), n in zip(wanted, counts, strict=True) if holds(n)][:3]
