"""What the judges of transactions see: the transactions in each replica's own bytes, and the committed records of
`__transaction_state`, one after the other.

Always true: looking changes nothing and draws no chance. The committed records are read up to the newest high watermark
of any replica at that very moment, so a leader that appends what its coordinator has just committed is not judged by an
older state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from strandline.histories.batches import LoggedBatch, LogReader
from strandline.histories.coverage import TRANSACTION
from strandline.histories.quorum_observation import QuorumObservation, Violation, overriding
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.histories.transactions.partition_log import (
    LoggedTransaction,
    PartitionTransactions,
    TransactionalBatch,
    read_transactional,
)
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.ids import TopicPartition
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.node.observation.replicas import ObservedReplica
from strandline.records.batch import decode
from strandline.transactions import framing
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.records import TransactionLogKey


class TransactionRecord(NamedTuple):
    """A record of `__transaction_state`; None: the id is removed."""

    transactional_id: str
    metadata: TransactionMetadata | None
    offset: int


class Place(NamedTuple):
    """A replica of a partition whose transactions are judged."""

    node_id: int
    key: Key
    name: TopicPartition
    replica: ObservedReplica

    def __str__(self) -> str:
        return f"{self.name[0]}-{self.name[1]}"


class TransactionJudge:
    """One property of transactions. It raises Violation; what it does not override it does not care for."""

    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        """A leader has written a batch of this open transaction; None: it opens one."""

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        """A leader has written a marker, which ended that."""

    def kept(
        self,
        seen: TransactionObservation,
        place: Place,
        before: PartitionTransactions,
        batch: TransactionalBatch,
    ) -> None:
        """Any replica holds this batch after what it held before."""

    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        """A replica is not as it was."""

    def appended(self, seen: TransactionObservation, node_id: int, record: TransactionRecord) -> None:
        """A coordinator has written this; it is not committed yet."""

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        """A record of a coordinator is committed."""

    def __repr__(self) -> str:
        return type(self).__name__


class TransactionObservation(ReplicaJudge):
    def __init__(self, observed: QuorumObservation, judges: Sequence[TransactionJudge], version: int) -> None:
        self.version = version
        """The cluster's level of `transaction.version`; all clients speak it."""
        self.states: dict[str, TransactionMetadata] = {}
        """By transactional id, as it is committed."""
        self.decisions: dict[str, TransactionMetadata] = {}
        """The newest committed PrepareCommit or PrepareAbort of each."""
        self.ids: dict[int, str] = {}
        """The transactional id of each producer id."""
        self.logs: dict[tuple[int, Key], PartitionTransactions] = {}
        """By node and partition, from the bytes of that replica."""
        self._observed = observed
        self._replicas: ReplicaObservation | None = None
        self._readers: dict[tuple[int, Key], LogReader] = {}
        self._committed_ends: dict[Key, int] = {}
        self._data = overriding(judges, TransactionJudge, "data")
        self._marker = overriding(judges, TransactionJudge, "marker")
        self._kept = overriding(judges, TransactionJudge, "kept")
        self._changed = overriding(judges, TransactionJudge, "changed")
        self._appended = overriding(judges, TransactionJudge, "appended")
        self._committed = overriding(judges, TransactionJudge, "committed")

    # What happens to replicas

    def appended(
        self, observed: ReplicaObservation, node_id: int, key: Key, batches: Sequence[LoggedBatch], *, is_growth: bool
    ) -> None:
        self._replicas = observed
        place = self._place(node_id, key)
        if place is None:
            return
        if place.name[0] == TRANSACTION_STATE:
            if is_growth and place.replica.leads:
                self.refresh()
                for record in _records(batches):
                    self._tell(self._appended, node_id, lambda judge: judge.appended(self, node_id, record))  # noqa: B023
            return
        known = self.logs.get((node_id, key))
        if known is None or not is_growth or batches[0].base_offset < known.end_offset:
            known = self.logs[node_id, key] = PartitionTransactions()
        is_leader = is_growth and self._is_newest_leader(place)
        for logged in batches:
            self._add(place, known, logged, is_leader=is_leader)

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        self._replicas = observed
        place = self._place(node_id, key)
        if place is None:
            return
        if place.name[0] == TRANSACTION_STATE:
            self.refresh()
            return
        known = self.logs.get((node_id, key))
        if known is None or place.replica.log.log_end_offset < known.end_offset:
            known = self.logs[node_id, key] = PartitionTransactions()  # nothing is left of what it had
        self._tell(self._changed, node_id, lambda judge: judge.changed(self, place, known))

    def _add(self, place: Place, known: PartitionTransactions, logged: LoggedBatch, *, is_leader: bool) -> None:
        batch = read_transactional(logged)
        if batch is None:
            known.add(logged)
            return
        self._tell(self._kept, place.node_id, lambda judge: judge.kept(self, place, known, batch))
        open_before = known.open.get(batch.producer_id)
        known.add(logged)
        if not is_leader:
            return
        self.refresh()
        if batch.is_marker:
            self._tell(self._marker, place.node_id, lambda judge: judge.marker(self, place, batch, open_before))
        else:
            self._tell(self._data, place.node_id, lambda judge: judge.data(self, place, batch, open_before))

    def _is_newest_leader(self, place: Place) -> bool:
        """It writes, and is the one that the newest metadata has: what a deposed leader writes is never committed."""
        assert self._replicas is not None
        state, replica = self._replicas.state(place.key), place.replica
        return (
            replica.leads
            and state is not None
            and (state.leader, state.leader_epoch) == (place.node_id, replica.leader_epoch)
        )

    # The coordinators' log

    def refresh(self) -> None:
        """Read what is committed by now."""
        observed = self._replicas
        topic = None if observed is None else observed.image.topics.get(TRANSACTION_STATE)
        if observed is None or topic is None:
            return
        for index, state in enumerate(topic.partitions):
            key = (topic.topic_id, index)
            for node_id in state.replicas:
                replica = observed.partition(node_id, key)
                if replica is not None and replica.high_watermark > self._committed_ends.get(key, 0):
                    self._read_committed(node_id, key, replica)

    def _read_committed(self, node_id: int, key: Key, replica: ObservedReplica) -> None:
        start, end = self._committed_ends.get(key, 0), replica.high_watermark
        reader = self._reader(node_id, key, replica)
        self._committed_ends[key] = end
        for record in _records(batch for batch in reader.between(start, end) if batch.base_offset >= start):
            self._commit(node_id, record)

    def _commit(self, node_id: int, record: TransactionRecord) -> None:
        before = self.states.get(record.transactional_id)
        self._tell(self._committed, node_id, lambda judge: judge.committed(self, record, before))
        if record.metadata is None:
            self.states.pop(record.transactional_id, None)
            return
        self.states[record.transactional_id] = record.metadata
        self.ids[record.metadata.producer_id] = record.transactional_id
        if record.metadata.state.is_prepared:
            self.decisions[record.transactional_id] = record.metadata
        if self._replicas is not None:
            self._replicas.coverage.note(TRANSACTION, record.metadata.state.label)

    # Facts

    def state_of(self, producer_id: int) -> TransactionMetadata | None:
        """What is committed of the transactional id that has, or had, this producer id."""
        transactional_id = self.ids.get(producer_id)
        return None if transactional_id is None else self.states.get(transactional_id)

    def is_there(self, name: TopicPartition) -> bool:
        """Its transactions are judged, and it is not deleted."""
        observed = self._replicas
        return observed is not None and name[0] in (LEDGER, COPIES) and name[0] in observed.image.topics

    def last_committed(self, name: TopicPartition, producer_id: int) -> TransactionalBatch | None:
        """The last batch or marker of a producer id below the newest high watermark of a partition."""
        observed = self._replicas
        if observed is None:
            return None
        topic = observed.image.topics[name[0]]
        key = (topic.topic_id, name[1])
        replicas = [(i, observed.partition(i, key)) for i in topic.partitions[name[1]].replicas]
        found = [(replica.high_watermark, i, replica) for i, replica in replicas if replica is not None]
        if not found:
            return None
        high_watermark, node_id, replica = max(found, key=lambda each: each[:2])
        for logged in reversed(self._reader(node_id, key, replica).batches):
            if logged.base_offset >= high_watermark:
                continue
            batch = read_transactional(logged)
            if batch is not None and batch.producer_id == producer_id:
                return batch
        return None

    def _reader(self, node_id: int, key: Key, replica: ObservedReplica) -> LogReader:
        reader = self._readers.get((node_id, key))
        if reader is None or reader.log is not replica.log:
            reader = self._readers[node_id, key] = LogReader(replica.log)
        reader.read()
        return reader

    def places(self) -> Iterable[tuple[Place, PartitionTransactions]]:
        """All replicas that are judged, with what their bytes say."""
        self.refresh()
        for (node_id, key), known in self.logs.items():
            place = self._place(node_id, key)
            if place is not None:
                yield place, known

    def _place(self, node_id: int, key: Key) -> Place | None:
        observed = self._replicas
        topic = None if observed is None else observed.image.topics_by_id.get(key[0])
        if observed is None or topic is None or topic.name not in (TRANSACTION_STATE, LEDGER, COPIES):
            return None
        replica = observed.partition(node_id, key)
        state = observed.state(key)
        if replica is None or state is None or node_id not in state.replicas or observed.is_rotten(node_id, key):
            return None
        return Place(node_id, key, (topic.name, key[1]), replica)

    def _tell(
        self, judges: Iterable[TransactionJudge], node_id: int, event: Callable[[TransactionJudge], None]
    ) -> None:
        for judge in judges:
            try:
                event(judge)
            except Violation as violation:
                self._observed.fail(judge, node_id, violation)


def _records(batches: Iterable[LoggedBatch]) -> Iterable[TransactionRecord]:
    for batch in batches:
        for record in decode(batch.content, check_crc=False):
            found = framing.decode(record.key, record.value)
            if found is not None:
                metadata, key = found.value, found.key
                assert isinstance(key, TransactionLogKey)
                assert metadata is None or isinstance(metadata, TransactionMetadata)
                yield TransactionRecord(key.transactional_id, metadata, record.offset)
