"""TXN-TI2: a read_committed poll has nothing of a transaction that is aborted, or was open when it was read; and passes
over nothing that is committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from strandline.histories.transactions.history import TransactionHistory
from strandline.histories.transactions.partition_log import LoggedTransaction, PartitionTransactions
from strandline.ids import TopicPartition

NAME = "reads-committed"


def judge(history: TransactionHistory, logs: Mapping[TopicPartition, PartitionTransactions]) -> Iterable[str]:
    by_offset: dict[tuple[TopicPartition, int], tuple[LoggedTransaction, bytes]] = {
        (key, offset): (each, value)
        for key, log in logs.items()
        for each in (*log.ended, *log.open.values())
        for offset, value in each.values()
    }
    committed = {
        key: sorted(offset for each in log.ended if each.is_committed for offset, _ in each.values())
        for key, log in logs.items()
    }
    for who, reads in history.reads.items():
        given: dict[TopicPartition, list[int]] = {}
        for read in reads:
            key = read.place[:2]
            given.setdefault(key, []).append(read.place.offset)
            found = by_offset.get((key, read.place.offset))
            if found is None or found[1] != read.value:
                yield f"{who} read {read.value!r} at {read.place} at {read.at:.3f} s, which does not stand there"
            elif found[0].marker is None or found[0].marker.base_offset >= read.committed_end:
                yield f"{who} read {read.value!r} at {read.place} at {read.at:.3f} s, and its {found[0]} was open"
            elif not found[0].is_committed:
                yield f"{who} read {read.value!r} at {read.place} at {read.at:.3f} s, and its {found[0]} is aborted"
        for key, offsets in given.items():
            if offsets != committed[key][: len(offsets)]:
                yield f"{who} read the offsets {offsets} of {key[0]}-{key[1]}, and committed are {committed[key]}"
