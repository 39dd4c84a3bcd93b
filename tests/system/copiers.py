"""Copiers: they consume one topic and produce another, in transactions that carry the group's offsets, and abort some of them.

A record of the input is a number; what is copied of it is the number and the transaction it was copied in, and goes to the
partition with the same index. Each number of a partition is larger than the one before by the count of
partitions.
Always true: a copier's threads and clients are gone when `close` has returned; `errors` has what it saw that may not be.
"""

from __future__ import annotations

import enum
import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from strandline.client import blocking
from strandline.client.errors import ProducerUnusable, TransactionAbortable
from strandline.errors import KafkaError
from tests.system.load import EAGER

RECORDS_MAX = 40
"""In one transaction."""
ABORTED_EVERY = 7
POLL_S = 0.1
CALL_S = 5.0
PATIENCE_S = 90.0
"""How long a call is repeated that may be repeated."""
TRANSACTION_TIMEOUT_MS = 60_000
SESSION_MS = 20_000
"""Longer than any failover."""

T = TypeVar("T")


class Outcome(enum.Enum):
    OPEN = enum.auto()
    ENDING = enum.auto()
    """The commit was asked for and not answered, or its answer was lost for good."""
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


class Input(NamedTuple):
    partition: int
    offset: int
    value: bytes


class Spoilt(Exception):
    """This transaction can only be aborted."""


class Unusable(Exception):
    """This producer can only be closed."""


class CopyingClient(ABC):
    """A consumer and a producer of one library. Each call is repeated inside, for as long as the library says that it may be."""

    @abstractmethod
    def poll(self) -> list[Input]: ...

    @abstractmethod
    def open_producer(self) -> None: ...

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, partition: int, value: bytes) -> None: ...

    @abstractmethod
    def send_offsets(self, offsets: dict[int, int]) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def committed(self) -> dict[int, int]:
        """The stable offsets of the group; 0 where it has none."""

    @abstractmethod
    def seek(self, offsets: dict[int, int]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class ConfluentCopying(CopyingClient):
    def __init__(
        self,
        bootstrap: str,
        source: str,
        target: str,
        partitions: int,
        protocol: str,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> None:
        self._source, self._target, self._partitions = source, target, partitions
        self._bootstrap = bootstrap
        self._timeout_ms = timeout_ms
        sessions = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                **EAGER,
                "group.id": target,
                "group.protocol": protocol,
                **(sessions if protocol == "classic" else {}),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.subscribe([source])
        self._producer: Producer | None = None

    def poll(self) -> list[Input]:
        found = []
        for message in self._consumer.consume(RECORDS_MAX, POLL_S):
            partition, offset, value = message.partition(), message.offset(), message.value()
            error = message.error()
            if error is not None:
                assert error.retriable() or not error.fatal(), error
                continue
            assert partition is not None
            assert offset is not None
            assert value is not None
            found.append(Input(partition, offset, value))
        return found

    def open_producer(self) -> None:
        settings = {"linger.ms": 0, "transactional.id": self._target, "transaction.timeout.ms": self._timeout_ms}
        self._producer = Producer({"bootstrap.servers": self._bootstrap, **EAGER, **settings})
        self._repeat(lambda: self._open.init_transactions(CALL_S))

    @property
    def _open(self) -> Producer:
        assert self._producer is not None
        return self._producer

    def begin(self) -> None:
        self._repeat(self._open.begin_transaction)

    def send(self, partition: int, value: bytes) -> None:
        self._open.produce(self._target, value, partition=partition)
        self._open.poll(0)

    def send_offsets(self, offsets: dict[int, int]) -> None:
        places = [TopicPartition(self._source, *place) for place in offsets.items()]
        stamp: Any = self._consumer.consumer_group_metadata()
        self._repeat(lambda: self._open.send_offsets_to_transaction(places, stamp, CALL_S))

    def commit(self) -> None:
        self._repeat(lambda: self._open.commit_transaction(CALL_S))

    def abort(self) -> None:
        self._repeat(lambda: self._open.abort_transaction(CALL_S))

    def committed(self) -> dict[int, int]:
        places = [TopicPartition(self._source, index) for index in range(self._partitions)]
        found = self._repeat(lambda: self._consumer.committed(places, CALL_S))
        return {place.partition: max(place.offset, 0) for place in found}

    def seek(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self._consumer.seek(TopicPartition(self._source, partition, offset))

    def close(self) -> None:
        self._consumer.close()
        self._producer = None

    def _repeat(self, call: Callable[[], T]) -> T:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except KafkaException as failure:
                error = failure.args[0]
                if error.fatal():
                    raise Unusable(str(error)) from failure
                if error.txn_requires_abort():
                    raise Spoilt(str(error)) from failure
                is_transient = error.retriable() or error.name() in ("_TIMED_OUT", "_WAIT_COORD", "_TRANSPORT")
                if not is_transient or time.monotonic() > deadline:
                    raise


class OurCopying(CopyingClient):
    def __init__(
        self,
        bootstrap: str,
        source: str,
        target: str,
        partitions: int,
        protocol: str,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> None:
        self._source, self._target, self._partitions = source, target, partitions
        self._timeout_ms = timeout_ms
        self._client = blocking.Client(bootstrap)
        config = blocking.ConsumerConfig(
            group_id=target,
            group_protocol=protocol,  # type: ignore[arg-type]
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=RECORDS_MAX,
        )
        self._consumer = blocking.Consumer(self._client, config)
        self._consumer.subscribe([source])
        self._producer: blocking.Producer | None = None

    def poll(self) -> list[Input]:
        return [Input(each.partition, each.offset, each.value or b"") for each in self._consumer.poll(POLL_S)]

    def open_producer(self) -> None:
        if self._producer is not None:
            self._producer.close(0)
        config = blocking.ProducerConfig(transactional_id=self._target, transaction_timeout_ms=self._timeout_ms)
        self._producer = blocking.Producer(self._client, config)
        self._repeat(self._open.init_transactions)

    @property
    def _open(self) -> blocking.Producer:
        assert self._producer is not None
        return self._producer

    def begin(self) -> None:
        self._repeat(self._open.begin_transaction)

    def send(self, partition: int, value: bytes) -> None:
        self._repeat(lambda: self._open.send(self._target, value, partition=partition))

    def send_offsets(self, offsets: dict[int, int]) -> None:
        stamp = self._consumer.group_metadata()
        places = {(self._source, partition): offset for partition, offset in offsets.items()}
        self._repeat(lambda: self._open.send_offsets_to_transaction(places, stamp))

    def commit(self) -> None:
        self._repeat(self._open.commit_transaction)

    def abort(self) -> None:
        self._repeat(self._open.abort_transaction)

    def committed(self) -> dict[int, int]:
        places = [(self._source, index) for index in range(self._partitions)]
        found = self._repeat(lambda: self._consumer.committed(places))
        return {place[1]: 0 if each is None else each.offset for place, each in found.items()}

    def seek(self, offsets: dict[int, int]) -> None:
        owned = self._consumer.assignment()
        for partition, offset in offsets.items():
            if (self._source, partition) in owned:
                self._consumer.seek(self._source, partition, offset)

    def close(self) -> None:
        self._consumer.close()
        if self._producer is not None:
            self._producer.close()
        self._client.close()

    def _repeat(self, call: Callable[[], T]) -> T:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except TransactionAbortable as error:
                raise Spoilt(str(error)) from error
            except ProducerUnusable as error:
                raise Unusable(str(error)) from error
            except KafkaError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise


class Copier:
    """A thread that copies until it is closed."""

    def __init__(self, name: str, target: str, client: CopyingClient, partitions: int) -> None:
        self.name = name
        self.target = target
        """Also its group and its transactional id."""
        self.outcomes: dict[int, Outcome] = {}
        self.committed: dict[int, int] = dict.fromkeys(range(partitions), 0)
        """Offsets of the input whose commit was acknowledged."""
        self.errors: list[str] = []
        self.spoilt: list[str] = []
        self.unusable: list[str] = []
        self.ends: list[float] = []
        """When each of its commits was acknowledged."""
        self._client = client
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def close(self) -> None:
        self._enough.set()
        self._thread.join()

    def count(self, outcome: Outcome) -> int:
        return list(self.outcomes.values()).count(outcome)

    def _run(self) -> None:
        try:
            self._client.open_producer()
            for number in itertools.count():
                inputs: list[Input] = []
                while not inputs:
                    if self._enough.is_set():
                        return
                    inputs = self._client.poll()
                self._transaction(number, inputs)
        except Exception as error:  # whatever it is, the test has to hear of it
            self.errors.append(f"{self.name} gave up: {error!r}")
        finally:
            self._client.close()

    def _transaction(self, number: int, inputs: list[Input]) -> None:
        self.outcomes[number] = Outcome.OPEN
        offsets = {each.partition: each.offset + 1 for each in inputs}
        try:
            try:
                self._client.begin()
                for each in inputs:
                    self._client.send(each.partition, b"%b %d" % (each.value, number))
                self._client.send_offsets(offsets)
                if number % ABORTED_EVERY == ABORTED_EVERY - 1:
                    self.outcomes[number] = Outcome.ABORTED
                    self._client.abort()
                else:
                    self.outcomes[number] = Outcome.ENDING
                    self._client.commit()
                    self.outcomes[number] = Outcome.COMMITTED
            except Spoilt as error:
                self.spoilt.append(str(error))
                self.outcomes[number] = Outcome.ABORTED
                self._client.abort()
        except Unusable as error:
            self.unusable.append(str(error))
            self._client.open_producer()
        if self.outcomes[number] is Outcome.COMMITTED:
            self.ends.append(time.monotonic())
            self.committed |= offsets
        else:
            self._rewind(number, offsets)

    def _rewind(self, number: int, offsets: dict[int, int]) -> None:
        """To what is committed, which is what was committed before, or all of this transaction (TI10)."""
        found = self._client.committed()
        before, after = self.committed, self.committed | offsets
        if found == after and self.outcomes[number] is Outcome.ENDING:
            self.outcomes[number] = Outcome.COMMITTED
        elif found != before:
            self.errors.append(
                f"{self.name}: the group has {found} after transaction {number}, {self.outcomes[number].name}, "
                f"which began at {before} and should have moved it to {after}"
            )
        if self.outcomes[number] is not Outcome.COMMITTED:
            self.outcomes[number] = Outcome.ABORTED
        self.committed = dict(found)
        self._client.seek(found)


class CommittedReader:
    """A read_committed reader of what all copiers write. What comes is the next number of its partition, and of a transaction
    whose commit was asked for: nothing twice, nothing left out, nothing aborted, nothing early (TI1, TI2)."""

    def __init__(self, bootstrap: str, copiers: list[Copier], partitions: int) -> None:
        self.errors: list[str] = []
        self.seen: dict[tuple[str, int], list[tuple[int, int]]] = {
            (copier.target, index): [] for copier in copiers for index in range(partitions)
        }
        """The number and the transaction of each record, by partition."""
        self._bootstrap = bootstrap
        self._copiers = {copier.target: copier for copier in copiers}
        self._partitions = partitions
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="committed reader")
        self._thread.start()

    def close(self) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        waiting = {"isolation.level": "read_committed", "fetch.wait.max.ms": 50}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, **EAGER, **settings, **waiting})
        consumer.assign([TopicPartition(*place, 0) for place in self.seen])
        while not self._enough.is_set():
            for message in consumer.consume(500, POLL_S):
                error, topic, partition, value = message.error(), message.topic(), message.partition(), message.value()
                if error is not None:
                    self.errors.append(f"the reader got {error}")
                    continue
                assert topic is not None
                assert partition is not None
                number, transaction = map(int, (value or b"").split())
                self._judge(topic, partition, number, transaction)
        consumer.close()

    def _judge(self, topic: str, partition: int, number: int, transaction: int) -> None:
        rows = self.seen[topic, partition]
        expected = rows[-1][0] + self._partitions if rows else partition
        if number != expected:
            what = "again" if (number < expected) else "too early"
            self.errors.append(
                f"{topic}-{partition}: {number} of {transaction} came {what}, {expected} is next, after {rows[-3:]}"
            )
        outcome = self._copiers[topic].outcomes[transaction]
        if outcome not in (Outcome.ENDING, Outcome.COMMITTED):
            self.errors.append(
                f"{topic}-{partition}: {number} of {transaction} is read, which is {outcome.name.lower()}"
            )
        rows.append((number, transaction))
