"""A shard of transactions with its log, its time and the leaders of its partitions played by the test.

    stage = TransactionStage(transaction_version=2)
    producer = stage.initialize("t")
    stage.add("t", producer, ("a", 0))
    assert stage.end("t", producer, commit=True).code is ErrorCode.NONE
    stage.mark_all()

Records are replayed at once and committed at once, unless the test holds commits back. Each record is taken through its bytes and
its transition is checked against TXN-T1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.records.header import RECORDS_AT
from strandline.records.record import record_bytes_max
from strandline.transactions import framing
from strandline.transactions.ending import Ending
from strandline.transactions.initialization import Initialization
from strandline.transactions.markers import EndMarker
from strandline.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.partitions import Addition
from strandline.transactions.records import TransactionLogKey
from strandline.transactions.shard import TransactionShard
from strandline.transactions.states import MAY_FOLLOW

START_S = 1000.0
START_WALL_MS = 1_700_000_000_000
A, B = ("a", 0), ("b", 1)

Result = CoordinatorResult


class Heard(NamedTuple):
    code: ErrorCode
    producer: ProducerIdAndEpoch = NO_PRODUCER


class PlayedNode:
    """The dependencies."""

    def __init__(self, transaction_version: int, settings: dict[str, str]) -> None:
        self.config = config_of(**settings)
        self.transaction_version = transaction_version
        self.producer_ids = itertools.count(100)
        self.has_producer_ids = True
        self.record_bytes_max = 1_048_588
        self.sent: list[EndMarker] = []
        self.forgotten: list[tuple[int, int]] = []
        self.noted: list[tuple[str, str]] = []
        """Kinds and reasons."""
        self.facts: dict[str, object] = {}
        """Of the newest."""

    def take_producer_id(self) -> int | None:
        return next(self.producer_ids) if self.has_producer_ids else None

    def send_marker(self, marker: EndMarker) -> None:
        self.sent.append(marker)

    def forget_markers(self, partition: int, coordinator_epoch: int) -> None:
        self.forgotten.append((partition, coordinator_epoch))

    def note(self, kind: str, partition: int, reason: str, **facts: object) -> None:
        self.noted.append((kind, reason))
        self.facts = facts


def config_of(**settings: str) -> NodeConfig:
    texts = {
        "node.id": "1",
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "c1:9093",
        "listeners": "PLAINTEXT://b1:9092",
        "log.dirs": "/data",
    }
    texts |= {name.replace("_", "."): text for name, text in settings.items()}
    return NodeConfig.build(of(texts), insecure=True)


class TransactionStage:
    def __init__(self, transaction_version: int = 2, **settings: str) -> None:
        self.node = PlayedNode(transaction_version, settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.committed_end = 0
        self.now = START_S
        self.wall_ms = START_WALL_MS
        self.coordinator_epoch = 5
        self.holds = False
        self.refuses: ErrorCode | None = None
        """Why nothing can be appended."""
        self._waiting: list[tuple[int, Result]] = []
        self.shard = TransactionShard(3, self.coordinator_epoch, self.node)
        self._carry_out(self.shard.loaded(self.at))

    @property
    def at(self) -> Moment:
        return Moment(self.now, self.wall_ms)

    # The frame around a shard

    def _carry_out(self, result: Result | None) -> None:
        while result is not None:
            refused = self.refuses
            if self._size_of(result) > self.node.record_bytes_max:
                refused = ErrorCode.RECORD_LIST_TOO_LARGE
            if result.records and refused is not None:
                result = result.done(refused, self.at)
                continue
            for record in result.records:
                self._append(record)
            self._waiting.append((len(self.log), result))
            self.shard.check_invariants()
            result = None
        if not self.holds:
            self.commit()

    def _encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        return framing.encode(record, framing.value_version(record, self.node.transaction_version))

    def _size_of(self, result: Result) -> int:
        """Of the batch that it would be."""
        return RECORDS_AT + sum(record_bytes_max(*self._encode(record)) for record in result.records)

    def _append(self, record: CoordinatorRecord) -> None:
        assert isinstance(record.key, TransactionLogKey)
        before = self.shard.transactions.get(record.key.transactional_id)
        if before is not None and isinstance(record.value, TransactionMetadata):
            assert before.state in MAY_FOLLOW[record.value.state]
        self.log.append(self._encode(record))
        self.shard.replay(record, self.wall_ms)

    def commit(self) -> None:
        """The high watermark reaches the log end; what was waited for follows."""
        self.committed_end = len(self.log)
        while self._waiting and self._waiting[0][0] <= self.committed_end:
            _, result = self._waiting.pop(0)
            if result.committed is not None:
                result.committed(self.at)
            self._carry_out(result.done(ErrorCode.NONE, self.at))

    def commit_one(self) -> None:
        """The high watermark reaches what the first one waits for."""
        self.committed_end, result = self._waiting.pop(0)
        if result.committed is not None:
            result.committed(self.at)
        self._carry_out(result.done(ErrorCode.NONE, self.at))

    def append_times_out(self) -> None:
        """All that waits is answered with REQUEST_TIMED_OUT; it may still be committed."""
        for place, (end, result) in enumerate(self._waiting):
            result.done(ErrorCode.REQUEST_TIMED_OUT, self.at)
            self._waiting[place] = (end, CoordinatorResult([], committed=result.committed))

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while (next_s := self.shard.timers.next_s) is not None and next_s <= end:
            if next_s > self.now:
                self.wall_ms += round(1000 * (next_s - self.now))
                self.now = next_s
            callback = self.shard.timers.take(self.now)
            assert callback is not None
            self._carry_out(callback(self.at))
        self.wall_ms += round(1000 * (end - self.now))
        self.now = end

    def failover(self, *, loses_uncommitted: bool = False) -> None:
        """Another node coordinates, from what the log says."""
        self.shard.unload()
        self._waiting.clear()
        if loses_uncommitted:
            del self.log[self.committed_end :]
        self.coordinator_epoch += 1
        self.node.sent.clear()
        self.shard = TransactionShard(3, self.coordinator_epoch, self.node)
        for key, value in self.log:
            record = framing.decode(key, value)
            assert record is not None
            self.shard.replay(record, self.wall_ms)
        self._carry_out(self.shard.loaded(self.at))
        self.advance(0)

    # Requests

    def _call(
        self, operation: Callable[[Callable[[ErrorCode, ProducerIdAndEpoch], None]], Result | None]
    ) -> list[Heard]:
        heard: list[Heard] = []
        try:
            result = operation(lambda code, producer: heard.append(Heard(code, producer)))
        except KafkaError as error:
            return [Heard(error.code)]
        self._carry_out(result)
        return heard

    def ask_initialize(self, transactional_id: str, **fields: object) -> list[Heard]:
        """The answer, once there is one."""
        request = Initialization(transactional_id, **({"timeout_ms": 60_000} | fields))  # type: ignore[arg-type]
        return self._call(lambda answer: self.shard.initialize(request, self.at, answer))

    def initialize(self, transactional_id: str = "t", **fields: object) -> ProducerIdAndEpoch:
        (heard,) = self.ask_initialize(transactional_id, **fields)
        assert heard.code is ErrorCode.NONE, heard
        return heard.producer

    def refused_initialize(self, transactional_id: str = "t", **fields: object) -> ErrorCode:
        (heard,) = self.ask_initialize(transactional_id, **fields)
        return heard.code

    def ask_add(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, tid: str = "t", **fields: int
    ) -> list[Heard]:
        request = Addition(
            tid, producer, frozenset(partitions), **({"transaction_version": self.node.transaction_version} | fields)
        )
        return self._call(
            lambda answer: self.shard.add_partitions(request, self.at, lambda code: answer(code, NO_PRODUCER))
        )

    def add(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, tid: str = "t", **fields: int
    ) -> ErrorCode:
        (heard,) = self.ask_add(producer, *partitions, tid=tid, **fields)
        return heard.code

    def verify(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, tid: str = "t"
    ) -> dict[TopicPartition, ErrorCode] | ErrorCode:
        try:
            return self.shard.verify(Addition(tid, producer, frozenset(partitions)))
        except KafkaError as error:
            return error.code

    def ask_end(
        self, producer: ProducerIdAndEpoch, *, commit: bool = True, tid: str = "t", version: int | None = None
    ) -> list[Heard]:
        if version is None:
            version = self.node.transaction_version
        request = Ending(tid, producer, commit, version)
        return self._call(lambda answer: self.shard.end(request, self.at, answer))

    def end(
        self, producer: ProducerIdAndEpoch, *, commit: bool = True, tid: str = "t", version: int | None = None
    ) -> Heard:
        (heard,) = self.ask_end(producer, commit=commit, tid=tid, version=version)
        return heard

    def mark(self, marker: EndMarker, *partitions: TopicPartition) -> None:
        self._carry_out(self.shard.marked(marker, partitions or marker.partitions, self.at))

    def mark_all(self) -> None:
        """Every marker that was sent is written."""
        sent, self.node.sent = self.node.sent, []
        for marker in sent:
            self.mark(marker)

    def transact(self, producer: ProducerIdAndEpoch, *, commit: bool = True, tid: str = "t") -> ProducerIdAndEpoch:
        """A whole transaction; what the producer goes on with."""
        assert self.add(producer, A, tid=tid) is ErrorCode.NONE
        heard = self.end(producer, commit=commit, tid=tid)
        assert heard.code is ErrorCode.NONE
        self.mark_all()
        return heard.producer if self.node.transaction_version >= 2 else producer

    # What stands

    @property
    def metadata(self) -> TransactionMetadata:
        return self.shard.transactions["t"]

    @property
    def state(self) -> str:
        return self.metadata.state.label

    def set_epoch(self, epoch: int, tid: str = "t") -> ProducerIdAndEpoch:
        """The state as if so many epochs were used."""
        import dataclasses

        metadata = dataclasses.replace(self.shard.transactions[tid], epoch=epoch)
        self.shard.transactions[tid] = metadata
        return metadata.producer
