"""A stage for the judges of transactions: what is committed of one transactional id, and one replica of the ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import framing
from strandline.groups.offsets.committed_offsets import CommittedOffsets
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.groups.shard import GroupShard
from strandline.histories.batches import LoggedBatch
from strandline.histories.exchanges import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
    CoordinatorExchange,
    NamedPartition,
)
from strandline.histories.quorum_observation import QuorumObservation
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import (
    PartitionTransactions,
    TransactionalBatch,
    read_transactional,
)
from strandline.histories.transactions.plan import COPIERS, COPIES, LEDGER
from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.node.observation.replicas import ObservedReplica
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState
from strandline.wire import messages

from .recording import TransactionalLog

NAME: TopicPartition = (LEDGER, 0)
OFFSETS: TopicPartition = (CONSUMER_OFFSETS, 0)
COPY: TopicPartition = (COPIES, 0)
KEY = (ZERO_UUID, 0)
ID, PRODUCER = "payments", 7


class FakeObservation(TransactionObservation):
    """Without replicas: what is committed is what it was given, and each partition has the replica of the stage."""

    def __init__(self, version: int) -> None:
        super().__init__(cast(QuorumObservation, None), [], version, {})
        self.log = TransactionalLog()
        self.all_places: dict[TopicPartition, Place] = {}
        self.partitions = {LEDGER: 2, COPIES: 2, CONSUMER_OFFSETS: 1}
        self.offsets = CommittedOffsets()
        """As the coordinator of the copiers has them."""
        self.index: list[tuple[int, int, bytes]] = []
        self.memory: dict[str, TransactionMetadata] = {}
        """As the coordinator has transactional ids."""

    def in_memory(self, node_id: int, transactional_id: str) -> TransactionMetadata | None:
        return self.memory.get(transactional_id)

    def is_there(self, name: TopicPartition) -> bool:
        return True

    def last_committed(self, name: TopicPartition, producer_id: int) -> TransactionalBatch | None:
        found = [each for batch in self.log.batches if (each := read_transactional(batch)) is not None]
        return found[-1] if found else None

    def partitions_of(self, topic: str) -> int:
        return self.partitions[topic]

    def place(self, node_id: int, name: NamedPartition) -> Place | None:
        by_id = {(bytes(place.key[0]), place.key[1]): place for place in self.all_places.values()}
        return self.all_places.get((name[0], name[1])) if isinstance(name[0], str) else by_id.get((name[0], name[1]))

    def newest_log(self, name: TopicPartition) -> PartitionTransactions | None:
        place = self.all_places.get(name)
        return None if place is None else self.logs[place.node_id, place.key]

    def groups(self, node_id: int, partition: int) -> GroupShard | None:
        return cast(GroupShard, SimpleNamespace(offsets=self.offsets))

    def aborted_index(self, place: Place) -> list[tuple[int, int, bytes]]:
        return self.index


class Stage:
    """One transactional id, and a replica of each partition that was asked for, on broker 1, which leads them."""

    def __init__(self, judge: TransactionJudge, *, version: int = 2) -> None:
        self.judge = judge
        self.seen = FakeObservation(version)
        self.log = self.seen.log
        self.logs = {NAME: self.log}
        self.place = self.add(NAME)
        self.replica: Any = self.place.replica
        self.known = self.seen.logs[1, KEY]
        self.now = 0.0
        self._offset = 0

    def add(self, name: TopicPartition) -> Place:
        """A replica of another partition."""
        replica: Any = SimpleNamespace(
            high_watermark=0,
            last_stable_offset=0,
            leads=True,
            is_offline=False,
            log=SimpleNamespace(log_start_offset=0, producers=SimpleNamespace(by_id={})),
        )
        topic_id = ZERO_UUID if name[0] == LEDGER else Uuid(name[0].encode().ljust(16, b"-")[:16])
        place = Place(1, (topic_id, name[1]), name, cast(ObservedReplica, replica))
        self.seen.all_places[name] = place
        self.seen.logs[1, place.key] = PartitionTransactions()
        self.logs.setdefault(name, TransactionalLog())
        return place

    # Requests

    def ask(self, api_key: int, request: Any, version: int | None = None) -> CoordinatorExchange:
        self.now += 1
        version = messages.request_family(api_key).versions[-1] if version is None else version
        exchange = CoordinatorExchange(1, "client", api_key, version, self.now)
        exchange.request = request
        self.judge.asked(self.seen, exchange)
        return exchange

    def answer(self, exchange: CoordinatorExchange, response: Any) -> None:
        self.now += 1
        exchange.response, exchange.answered_at = response, self.now
        self.judge.answered(self.seen, exchange)

    def exchange(self, api_key: int, request: Any, response: Any, version: int | None = None) -> None:
        self.answer(self.ask(api_key, request, version), response)

    def initialised(self, epoch: int, *, producer_id: int = PRODUCER, code: int = 0, expected: int = -1) -> None:
        """`expected`: the epoch that the producer says it has."""
        Request, Response = messages.request(INIT_PRODUCER_ID), messages.response(INIT_PRODUCER_ID)
        has = PRODUCER if expected >= 0 else -1
        request = Request(transactional_id=ID, producer_id=has, producer_epoch=expected)
        response = Response(producer_id=producer_id, producer_epoch=epoch, error_code=code)
        self.exchange(INIT_PRODUCER_ID, request, response)

    def ended(self, epoch: int, *, commit: bool = True, code: int = 0, version: int = 5, answered: int = -1) -> None:
        Request, Response = messages.request(END_TXN), messages.response(END_TXN)
        request = Request(transactional_id=ID, producer_id=PRODUCER, producer_epoch=epoch, committed=commit)
        response = Response(error_code=code, producer_id=PRODUCER if answered >= 0 else -1, producer_epoch=answered)
        self.exchange(END_TXN, request, response, version)

    def added(self, epoch: int, name: TopicPartition = NAME, *, code: int = 0, is_broker: bool = False) -> None:
        """By the client itself, or by a broker for it."""
        Request, Response = messages.request(ADD_PARTITIONS_TO_TXN), messages.response(ADD_PARTITIONS_TO_TXN)
        partition = Response.AddPartitionsToTxnPartitionResult(partition_index=name[1], partition_error_code=code)
        topic = Response.AddPartitionsToTxnTopicResult(name=name[0], results_by_partition=[partition])
        asked = [Request.AddPartitionsToTxnTopic(name=name[0], partitions=[name[1]])]
        if is_broker:
            transaction = Request.AddPartitionsToTxnTransaction(
                transactional_id=ID, producer_id=PRODUCER, producer_epoch=epoch, verify_only=True, topics=asked
            )
            result = Response.AddPartitionsToTxnResult(transactional_id=ID, topic_results=[topic])
            request, response = Request(transactions=[transaction]), Response(results_by_transaction=[result])
        else:
            request = Request(
                v3_and_below_transactional_id=ID,
                v3_and_below_producer_id=PRODUCER,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=asked,
            )
            response = Response(results_by_topic_v3_and_below=[topic])
        self.exchange(ADD_PARTITIONS_TO_TXN, request, response, 5 if is_broker else 3)

    def added_offsets(self, epoch: int, *, code: int = 0) -> None:
        Request, Response = messages.request(ADD_OFFSETS_TO_TXN), messages.response(ADD_OFFSETS_TO_TXN)
        request = Request(transactional_id=ID, producer_id=PRODUCER, producer_epoch=epoch, group_id=COPIERS)
        self.exchange(ADD_OFFSETS_TO_TXN, request, Response(error_code=code))

    def committed_offsets(self, epoch: int, offset: int, *, code: int = 0, name: TopicPartition = NAME) -> None:
        Request, Response = messages.request(TXN_OFFSET_COMMIT), messages.response(TXN_OFFSET_COMMIT)
        partition = Request.TxnOffsetCommitRequestPartition(partition_index=name[1], committed_offset=offset)
        topic = Request.TxnOffsetCommitRequestTopic(name=name[0], partitions=[partition])
        request = Request(
            transactional_id=ID, group_id=COPIERS, producer_id=PRODUCER, producer_epoch=epoch, topics=[topic]
        )
        answer = Response.TxnOffsetCommitResponsePartition(partition_index=name[1], error_code=code)
        answered = Response.TxnOffsetCommitResponseTopic(name=name[0], partitions=[answer])
        self.exchange(TXN_OFFSET_COMMIT, request, Response(topics=[answered]))

    # Records

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

    def write(self, batch: LoggedBatch, name: TopicPartition = NAME) -> None:
        """The leader has written it."""
        found, place = read_transactional(batch), self.seen.all_places[name]
        known = self.seen.logs[1, place.key]
        assert found is not None
        self.judge.kept(self.seen, place, known, found)
        before = known.open.get(found.producer_id)
        known.add(batch)
        if found.is_marker:
            self.judge.marker(self.seen, place, found, before)
        else:
            self.judge.data(self.seen, place, found, before)

    def data(self, epoch: int, *values: bytes, name: TopicPartition = NAME) -> None:
        self.write(self.logs[name].data(PRODUCER, epoch, *(values or (b"v",))), name)

    def offsets(self, epoch: int, offset: int, source: TopicPartition = NAME) -> None:
        """A transaction commits where the copiers have come."""
        log = self.logs[OFFSETS]
        record = CoordinatorRecord(
            OffsetCommitKey(group=COPIERS, topic=source[0], partition=source[1]),
            OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1),
        )
        self.write(log.records(PRODUCER, epoch, framing.encode(record)), OFFSETS)

    def marker(
        self, epoch: int, *, commit: bool = True, coordinator_epoch: int = 0, name: TopicPartition = NAME
    ) -> None:
        log = self.logs[name]
        self.write(log.marker(PRODUCER, epoch, commit=commit, coordinator_epoch=coordinator_epoch), name)

    def change(self, high_watermark: int, stable: int, start: int = 0) -> None:
        self.replica.high_watermark, self.replica.last_stable_offset = high_watermark, stable
        self.replica.log.log_start_offset = start
        self.judge.changed(self.seen, self.place, self.known)

    def look(self, name: TopicPartition = NAME) -> None:
        """A replica is not as it was."""
        place = self.seen.all_places[name]
        self.judge.changed(self.seen, place, self.seen.logs[1, place.key])
