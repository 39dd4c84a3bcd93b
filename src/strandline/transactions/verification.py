"""What a leader asks the coordinators: is this partition part of that transaction (TXN-V1, TXN-V7), and what producers hear of it
(TXN-T25, TXN-T26).

    queue.add(broker_id, question, done)
    asked = queue.take(broker_id)
    queue.answered(broker_id, codes)

Always true: one request per coordinator is under way, the rest is gathered; of two epochs of one transactional id the newer one is
asked for; a question is answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.metadata import ProducerIdAndEpoch

PARTITIONS_PER_REQUEST_MAX = 2000
"""What more is to be asked goes in the next request; one question is never divided."""
Codes = Mapping[TopicPartition, ErrorCode]
Done = Callable[[Codes], None]


class Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    verify_only: bool
    """Else the partition is added (TXN-V1)."""
    partitions: frozenset[TopicPartition]


class AskedTransaction:
    """One transactional id in a request, and all who wait for its answer."""

    __slots__ = ("partitions", "producer", "transactional_id", "verify_only", "waiting")

    def __init__(self, question: Question) -> None:
        self.transactional_id = question.transactional_id
        self.producer = question.producer
        self.verify_only = question.verify_only
        self.partitions: set[TopicPartition] = set()
        self.waiting: list[tuple[frozenset[TopicPartition], Done]] = []

    def add(self, partitions: frozenset[TopicPartition], done: Done) -> None:
        self.partitions |= partitions
        self.waiting.append((partitions, done))

    def answer(self, codes: Codes | ErrorCode) -> None:
        waiting, self.waiting = self.waiting, []
        for partitions, done in waiting:
            done({partition: _code(codes, partition) for partition in partitions})


def _code(codes: Codes | ErrorCode, partition: TopicPartition) -> ErrorCode:
    # An answer that leaves a partition out says nothing of it: the leader asks again.
    return codes if isinstance(codes, ErrorCode) else codes.get(partition, ErrorCode.NETWORK_EXCEPTION)


class Asked(dict[str, AskedTransaction]):
    """A request, by transactional id."""

    partitions_count = 0

    def has_room(self, question: Question) -> bool:
        return self.partitions_count + len(question.partitions) <= PARTITIONS_PER_REQUEST_MAX

    def put(self, question: Question, done: Done) -> None:
        """A transactional id that it does not have, or a newer epoch of it."""
        asked = self[question.transactional_id] = AskedTransaction(question)
        self.join(asked, question, done)

    def join(self, asked: AskedTransaction, question: Question, done: Done) -> None:
        asked.add(question.partitions, done)
        self.partitions_count += len(question.partitions)


class VerificationQueue:
    def __init__(self) -> None:
        self._waiting: dict[int, list[Asked]] = {}
        """By coordinator: the requests to come. A transactional id is once in each."""
        self._in_flight: dict[int, Asked] = {}

    def add(self, broker_id: int, question: Question, done: Done) -> None:
        requests = self._waiting.setdefault(broker_id, [])
        for request in requests:
            found = request.get(question.transactional_id)
            if found is None or found.producer.producer_id != question.producer.producer_id:
                continue
            if found.producer.epoch > question.producer.epoch:
                done(dict.fromkeys(question.partitions, ErrorCode.INVALID_PRODUCER_EPOCH))
                return
            if found.producer.epoch < question.producer.epoch:
                request.put(question, done)
                found.answer(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            if found.verify_only is question.verify_only and request.has_room(question):
                request.join(found, question, done)
                return
        for request in requests:
            if question.transactional_id not in request and request.has_room(question):
                break
        else:
            request = Asked()
            requests.append(request)
        request.put(question, done)

    def take(self, broker_id: int) -> Asked | None:
        """The next request to this coordinator; None while one is under way, or if nothing is to be asked."""
        requests = self._waiting.get(broker_id)
        if broker_id in self._in_flight or not requests:
            return None
        asked = requests.pop(0)
        if not requests:
            del self._waiting[broker_id]
        self._in_flight[broker_id] = asked
        return asked

    def answered(self, broker_id: int, codes: Mapping[str, Codes] | ErrorCode) -> None:
        """The codes of each transactional id, or why there are none."""
        for transactional_id, asked in self._in_flight.pop(broker_id).items():
            if isinstance(codes, ErrorCode):
                asked.answer(codes)
            else:
                asked.answer(codes.get(transactional_id, ErrorCode.NETWORK_EXCEPTION))


_COORDINATOR_IS_AWAY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
PRODUCE_KNOWS_ABORTABLE = 11
PRODUCE_ADDS_PARTITIONS = 12
TXN_OFFSET_COMMIT_KNOWS_ABORTABLE = 4
TXN_OFFSET_COMMIT_ADDS_PARTITIONS = 5


def produce_code(code: ErrorCode, version: int) -> ErrorCode:
    """What a Produce of this version hears; old clients repeat NOT_ENOUGH_REPLICAS without asking for metadata (TXN-T26)."""
    if code in _COORDINATOR_IS_AWAY or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and version < PRODUCE_ADDS_PARTITIONS
    ):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return _in_its_version(code, version >= PRODUCE_KNOWS_ABORTABLE)


def offset_commit_code(code: ErrorCode, version: int) -> ErrorCode:
    """What a TxnOffsetCommit of this version hears."""
    if code is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _in_its_version(code, version >= TXN_OFFSET_COMMIT_KNOWS_ABORTABLE)


def _in_its_version(code: ErrorCode, knows_abortable: bool) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
