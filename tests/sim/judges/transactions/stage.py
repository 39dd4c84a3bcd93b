"""A stage for the judges of transactions: what is committed of one transactional id, and one replica of the ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from strandline.histories.batches import LoggedBatch
from strandline.histories.quorum_observation import QuorumObservation
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import (
    PartitionTransactions,
    TransactionalBatch,
    read_transactional,
)
from strandline.histories.transactions.plan import LEDGER
from strandline.ids import ZERO_UUID, TopicPartition
from strandline.node.observation.replicas import ObservedReplica
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState

from .recording import TransactionalLog

NAME: TopicPartition = (LEDGER, 0)
KEY = (ZERO_UUID, 0)
ID, PRODUCER = "payments", 7


class FakeObservation(TransactionObservation):
    """Without replicas: what is committed is what it was given."""

    def __init__(self, version: int) -> None:
        super().__init__(cast(QuorumObservation, None), [], version)
        self.log = TransactionalLog()

    def is_there(self, name: TopicPartition) -> bool:
        return True

    def last_committed(self, name: TopicPartition, producer_id: int) -> TransactionalBatch | None:
        found = [each for batch in self.log.batches if (each := read_transactional(batch)) is not None]
        return found[-1] if found else None


class Stage:
    def __init__(self, judge: TransactionJudge, *, version: int = 2) -> None:
        self.judge = judge
        self.seen = FakeObservation(version)
        self.log = self.seen.log
        self.known = self.seen.logs[1, KEY] = PartitionTransactions()
        self.replica: Any = SimpleNamespace(
            high_watermark=0, last_stable_offset=0, log=SimpleNamespace(log_start_offset=0)
        )
        self.place = Place(1, KEY, NAME, cast(ObservedReplica, self.replica))
        self._offset = 0

    def record(
        self, state: TransactionState | None, epoch: int, *partitions: TopicPartition, producer_id: int = PRODUCER
    ) -> TransactionRecord:
        self._offset += 1
        metadata = None
        if state is not None:
            metadata = TransactionMetadata(
                producer_id=producer_id,
                epoch=epoch,
                timeout_ms=1_000,
                state=state,
                partitions=frozenset(partitions),
                update_ms=self._offset,
                transaction_version=self.seen.version,
            )
        return TransactionRecord(ID, metadata, self._offset)

    def commit(self, state: TransactionState | None, epoch: int = 0, *partitions: TopicPartition) -> None:
        """A coordinator's record is committed."""
        record = self.record(state, epoch, *partitions)
        before = self.seen.states.get(ID)
        self.judge.committed(self.seen, record, before)
        if record.metadata is None:
            self.seen.states.pop(ID)
            return
        self.seen.states[ID] = record.metadata
        self.seen.ids[PRODUCER] = ID
        if record.metadata.state.is_prepared:
            self.seen.decisions[ID] = record.metadata

    def write(self, batch: LoggedBatch) -> None:
        """The leader has written it."""
        found = read_transactional(batch)
        assert found is not None
        self.judge.kept(self.seen, self.place, self.known, found)
        before = self.known.open.get(found.producer_id)
        self.known.add(batch)
        if found.is_marker:
            self.judge.marker(self.seen, self.place, found, before)
        else:
            self.judge.data(self.seen, self.place, found, before)

    def data(self, epoch: int) -> None:
        self.write(self.log.data(PRODUCER, epoch, b"v"))

    def marker(self, epoch: int, *, commit: bool = True, coordinator_epoch: int = 0) -> None:
        self.write(self.log.marker(PRODUCER, epoch, commit=commit, coordinator_epoch=coordinator_epoch))

    def change(self, high_watermark: int, stable: int, start: int = 0) -> None:
        self.replica.high_watermark, self.replica.last_stable_offset = high_watermark, stable
        self.replica.log.log_start_offset = start
        self.judge.changed(self.seen, self.place, self.known)
