"""TXN-TI14, TXN-P9: the aborted transactions that a Fetch of committed records is told of are those that its bytes and
the log say: each that was aborted at or behind its offset and began before the end of the bytes, also if it began before
the offset. The bytes end before the last stable offset; a Fetch of all records is told of none."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.batches import walk
from strandline.histories.exchanges import BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.wire.fetch import TOPIC_ID_SINCE


class AbortedListMatchesLog(TransactionJudge):
    def fetched(self, seen: TransactionObservation, node_id: int, exchange: BrokerExchange) -> None:
        by_id = exchange.version >= TOPIC_ID_SINCE
        for topic in exchange.message().responses:
            for answer in topic.partitions:
                name = (bytes(topic.topic_id) if by_id else topic.topic, answer.partition_index)
                place = seen.place(node_id, name)
                if place is None or answer.error_code != ErrorCode.NONE or name not in exchange.asked:
                    continue
                told = answer.aborted_transactions
                if not exchange.reads_committed:
                    if told is not None:
                        raise Violation(f"{place}: tells a reader of all records of aborted transactions")
                    continue
                known = seen.logs.get((node_id, place.key))
                end = max((batch.last_offset + 1 for batch, _ in walk(bytes(answer.records or b""))), default=-1)
                if known is None or known.end_offset < end:
                    continue  # it was cut since
                if end > answer.last_stable_offset:
                    raise Violation(f"{place}: gives records to {end}, and is stable to {answer.last_stable_offset}")
                found = sorted((each.producer_id, each.first_offset) for each in told or ())
                offset = exchange.asked[name].offset
                expected = aborted_between(known, offset, end)
                if found != expected:
                    raise Violation(f"{place}: tells of {found} aborted from {offset} to {end}, the log has {expected}")


def aborted_between(known: PartitionTransactions, offset: int, end_offset: int) -> list[tuple[int, int]]:
    return sorted(
        (each.producer_id, each.first_offset)
        for each in known.ended
        if each.marker is not None
        and not each.is_committed
        and each.marker.base_offset >= offset
        and each.first_offset < end_offset
    )
