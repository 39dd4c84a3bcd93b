"""TXN-TI10: what copiers read, write and commit in one transaction is in the copies exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from strandline.histories.transactions.history import TransactionHistory
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.ids import TopicPartition

NAME = "copied-once"


def judge(history: TransactionHistory, logs: Mapping[TopicPartition, PartitionTransactions]) -> Iterable[str]:
    sources = Counter(value for key, values in history.final.items() if key[0] == LEDGER for value in values)
    copies = Counter(
        value.partition(b">")[0] for key, values in history.final.items() if key[0] == COPIES for value in values
    )
    if not any(key[0] == COPIES for key in logs):
        return
    if twice := sorted(value for value, count in copies.items() if count > sources[value]):
        yield f"{len(twice)} values were copied more often than they are there: {twice[:3]}"
    if missing := sorted(value for value, count in sources.items() if count > copies[value]):
        yield f"{len(missing)} values were never copied: {missing[:3]}"
