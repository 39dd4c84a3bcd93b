"""What the judges of transactions see: the transactions in each replica's own bytes, the committed records of
`__transaction_state`, one after the other, and what is asked and answered.

Always true: looking changes nothing and draws no chance. The committed records are read up to the newest high watermark
of any replica at that very moment, so a leader that appends what its coordinator has just committed is not judged by an
older state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from strandline.api.groups.placement import partition_of
from strandline.groups.shard import GroupShard
from strandline.histories.batches import LoggedBatch, LogReader
from strandline.histories.coverage import TRANSACTION
from strandline.histories.exchanges import FETCH, PRODUCE, BrokerExchange, CoordinatorExchange, NamedPartition
from strandline.histories.member import ClusterMember
from strandline.histories.quorum_observation import QuorumObservation, Violation, overriding
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.partition_log import (
    PartitionTransactions,
    TransactionalBatch,
    read_transactional,
)
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.ids import TopicPartition
from strandline.log import names
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.node.observation.replicas import ObservedReplica
from strandline.records.batch import decode
from strandline.transactions import framing
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.records import TransactionLogKey


class TransactionObservation(ReplicaJudge):
    def __init__(
        self,
        observed: QuorumObservation,
        judges: Sequence[TransactionJudge],
        version: int,
        members: Mapping[int, ClusterMember],
        topics: Sequence[str] = (LEDGER, COPIES, CONSUMER_OFFSETS),
    ) -> None:
        self.version = version
        """The cluster's level of `transaction.version`; all clients speak it."""
        self.topics = frozenset(topics)
        """Those whose transactions are judged: none that is cleaned."""
        self.states: dict[str, TransactionMetadata] = {}
        """By transactional id, as it is committed."""
        self.decisions: dict[str, TransactionMetadata] = {}
        """The newest committed PrepareCommit or PrepareAbort of each."""
        self.ids: dict[int, str] = {}
        """The transactional id of each producer id."""
        self.logs: dict[tuple[int, Key], PartitionTransactions] = {}
        """By node and partition, from the bytes of that replica."""
        self.on_exchange: list[Callable[[CoordinatorExchange], None]] = []
        """Told of each request of a coordinator as it leaves, and of each answer, and of each Produce."""
        self._observed = observed
        self._members = members
        self._replicas: ReplicaObservation | None = None
        self._readers: dict[tuple[int, Key], LogReader] = {}
        self._committed_ends: dict[Key, int] = {}
        self._data = overriding(judges, TransactionJudge, "data")
        self._marker = overriding(judges, TransactionJudge, "marker")
        self._kept = overriding(judges, TransactionJudge, "kept")
        self._changed = overriding(judges, TransactionJudge, "changed")
        self._appended = overriding(judges, TransactionJudge, "appended")
        self._committed = overriding(judges, TransactionJudge, "committed")
        self._coordinates = overriding(judges, TransactionJudge, "coordinates")
        self._asked = overriding(judges, TransactionJudge, "asked")
        self._answered = overriding(judges, TransactionJudge, "answered")
        self._fetched = overriding(judges, TransactionJudge, "fetched")
        self._produced = overriding(judges, TransactionJudge, "produced")

    # What happens to replicas

    def appended(
        self, observed: ReplicaObservation, node_id: int, key: Key, batches: Sequence[LoggedBatch], *, is_growth: bool
    ) -> None:
        self._replicas = observed
        place = self._place(node_id, key)
        if place is None:
            return
        if place.name[0] == TRANSACTION_STATE:
            if is_growth and self._is_newest_leader(place):
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
            self._see_coordinators(node_id)
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

    # What is asked and answered

    def hear(self, exchange: CoordinatorExchange) -> None:
        if exchange.answered_at is None:
            self._tell(self._asked, exchange.broker_id, lambda judge: judge.asked(self, exchange))
        else:
            self.refresh()
            self._see_coordinators(exchange.broker_id)
            self._tell(self._answered, exchange.broker_id, lambda judge: judge.answered(self, exchange))
        for tell in tuple(self.on_exchange):
            tell(exchange)

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        self._replicas = observed
        if exchange.api_key == FETCH and exchange.replica_id < 0 and not exchange.is_refused:
            self._tell(self._fetched, node_id, lambda judge: judge.fetched(self, node_id, exchange))
        elif exchange.api_key == PRODUCE and exchange.transactional_id is not None:
            self.refresh()
            self._tell(self._produced, node_id, lambda judge: judge.produced(self, node_id, exchange))

    def _see_coordinators(self, node_id: int) -> None:
        node = self._members[node_id].observed
        for shard in () if node is None else node.transaction_shards:
            partition, epoch = shard.partition, shard.coordinator_epoch
            self._tell(
                self._coordinates,
                node_id,
                lambda judge: judge.coordinates(self, node_id, partition, epoch),  # noqa: B023
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

    def in_memory(self, node_id: int, transactional_id: str) -> TransactionMetadata | None:
        """As a node that coordinates it has it now, which may not be written yet."""
        node = self._members[node_id].observed
        shards = () if node is None else node.transaction_shards
        found = (shard.transactions.get(transactional_id) for shard in shards)
        return next((each for each in found if each is not None), None)

    def is_there(self, name: TopicPartition) -> bool:
        """Its transactions are judged, and it is not deleted."""
        observed = self._replicas
        return observed is not None and name[0] in self.topics and name[0] in observed.image.topics

    def partitions_of(self, topic: str) -> int:
        known = None if self._replicas is None else self._replicas.image.topics.get(topic)
        return 0 if known is None else len(known.partitions)

    def offsets_partition(self, group_id: str) -> int:
        """The group's, of `__consumer_offsets`; -1 while there is none."""
        count = self.partitions_of(CONSUMER_OFFSETS)
        return partition_of(group_id, count) if count else -1

    def place(self, node_id: int, name: NamedPartition) -> Place | None:
        """The replica of a partition that a node has, if its transactions are judged."""
        key = None if self._replicas is None else self._replicas.key(name)
        return None if key is None else self._place(node_id, key)

    def leader_of(self, name: NamedPartition) -> Place | None:
        """The replica that the newest metadata has lead a partition."""
        key = None if self._replicas is None else self._replicas.key(name)
        state = None if self._replicas is None or key is None else self._replicas.state(key)
        return None if state is None or key is None else self._place(state.leader, key)

    def newest_log(self, name: TopicPartition) -> PartitionTransactions | None:
        """Of the replica that knows most of a partition to be committed."""
        observed = self._replicas
        key = None if observed is None else observed.key(name)
        if observed is None or key is None:
            return None
        found = [
            (replica.high_watermark, known.end_offset, node_id)
            for (node_id, each), known in self.logs.items()
            if each == key and (replica := observed.partition(node_id, key)) is not None
        ]
        return self.logs[max(found)[2], key] if found else None

    def groups(self, node_id: int, partition: int) -> GroupShard | None:
        """Of a partition of `__consumer_offsets`, as a node that coordinates it has them in memory."""
        node = self._members[node_id].observed
        coordinated = None if node is None or not node.has_shards else node.shard(partition)
        return None if coordinated is None else coordinated.shard

    def aborted_index(self, place: Place) -> list[tuple[int, int, bytes]]:
        """Of each segment of a replica its offsets, and what its index of aborted transactions holds."""
        disk = self._members[place.node_id].machine.disk
        return [
            (segment.base_offset, segment.next_offset, disk.peek(_index_of(segment.file.path)) or b"")
            for segment in place.replica.log.segments
        ]

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
        if observed is None or topic is None or topic.name not in (TRANSACTION_STATE, *self.topics):
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


def _index_of(log_path: str) -> str:
    return log_path.removesuffix(names.LOG_SUFFIX) + names.TXN_INDEX_SUFFIX


def _records(batches: Iterable[LoggedBatch]) -> Iterable[TransactionRecord]:
    for batch in batches:
        for record in decode(batch.content, check_crc=False):
            found = framing.decode(record.key, record.value)
            if found is not None:
                metadata, key = found.value, found.key
                assert isinstance(key, TransactionLogKey)
                assert metadata is None or isinstance(metadata, TransactionMetadata)
                yield TransactionRecord(key.transactional_id, metadata, record.offset)
