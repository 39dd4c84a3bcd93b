"""Logs with transactions, made of real batches, and the history of clients that goes with them."""

from __future__ import annotations

from strandline.histories.batches import LoggedBatch, walk
from strandline.histories.record_history import RecordPosition
from strandline.histories.transactions import partition_log
from strandline.histories.transactions.history import ClientTransaction, ToldEnd, TransactionHistory
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.histories.transactions.plan import LEDGER
from strandline.ids import TopicPartition
from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.header import assign


class TransactionalLog:
    """The batches of one partition."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.batches: list[LoggedBatch] = []

    def data(self, producer_id: int, epoch: int, *values: bytes, sequence: int = 0) -> LoggedBatch:
        builder = BatchBuilder()
        for value in values:
            builder.append(None, value, timestamp=1)
        content = builder.build(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
        )
        return self._add(content, len(values))

    def records(self, producer_id: int, epoch: int, *records: tuple[bytes, bytes | None]) -> LoggedBatch:
        builder = BatchBuilder()
        for key, value in records:
            builder.append(key, value, timestamp=1)
        content = builder.build(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        return self._add(content, len(records))

    def marker(self, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0) -> LoggedBatch:
        builder = BatchBuilder()
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        builder.append(control_key(kind), end_txn_marker(coordinator_epoch), timestamp=1)
        content = builder.build(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)
        return self._add(content, 1)

    def _add(self, content: bytearray, count: int) -> LoggedBatch:
        assign(content, self.end_offset, 0)
        self.end_offset += count
        ((batch, _),) = walk(content)
        self.batches.append(batch)
        return batch

    @property
    def transactions(self) -> PartitionTransactions:
        return partition_log.of(self.batches)


class Recording:
    """A ledger of two partitions, and one producer."""

    def __init__(self) -> None:
        self.history = TransactionHistory(committed_end=lambda topic, partition: self.logs[topic, partition].end_offset)
        self.logs = {(LEDGER, n): TransactionalLog() for n in (0, 1)}

    @property
    def seen(self) -> dict[TopicPartition, PartitionTransactions]:
        return {key: log.transactions for key, log in self.logs.items()}

    def written(
        self, *ends: bool | None, told: ToldEnd = ToldEnd.COMMITTED, asked: bool = True, epoch: int = 0
    ) -> ClientTransaction:
        """A transaction with a value in each partition; `ends` are its markers there, None for none."""
        begun = self.history.begin("p")
        begun.asked_to_commit, begun.told = asked, told
        for (key, log), end in zip(self.logs.items(), ends, strict=True):
            value = b"p-%d-%d" % (begun.number, key[1])
            begun.values[value] = key
            log.data(7, epoch, value)
            if end is not None:
                log.marker(7, epoch, commit=end)
            if end:
                self.history.note_final(key, value)
        return begun

    def read(self, partition: int, offset: int, value: bytes) -> None:
        self.history.note_read("reader", RecordPosition(LEDGER, partition, offset), value, is_committed=True)
