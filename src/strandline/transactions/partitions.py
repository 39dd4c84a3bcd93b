"""AddPartitionsToTxn and AddOffsetsToTxn: what a transaction writes to (TXN-T17, TXN-T18).

Always true: a partition is part of a transaction before its leader takes the first record; also "it is already" waits until all
of it is committed (TXN-T2). A verification changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.transactions import framing
from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.transactions.shard import TransactionShard

CodeAnswer = Callable[[ErrorCode], None]
ROOM_FOR_THE_END_BYTES = 256
"""The record of the decision is larger by so much at most: batch, tags, a producer id more."""
PARTITION_BYTES_MAX = 260
"""The longest topic name with one partition."""


class Addition(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[TopicPartition]
    transaction_version: int = 0
    """The client's."""


def add(shard: TransactionShard, request: Addition, at: Moment, answer: CodeAnswer) -> CoordinatorResult | None:
    metadata = _found(shard, request)
    if metadata.state.is_prepared:
        # Before the pair is looked at: after the last epoch its producer comes with the next producer id already (TXN-T23).
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer(metadata, request)
    if metadata.state is TransactionState.ONGOING and metadata.partitions >= request.partitions:
        records = []
    else:
        metadata = metadata.with_partitions(request.partitions, request.transaction_version, at.wall_ms, at.now)
        records = [transaction_record(request.transactional_id, metadata)]
        _check_size(records[0], request, shard.dependencies.record_bytes_max)

    def done(code: ErrorCode, at: Moment) -> None:
        answer(coordinator_error(code))

    return CoordinatorResult(records, done)


def verify(shard: TransactionShard, request: Addition) -> dict[TopicPartition, ErrorCode]:
    metadata = _found(shard, request)
    _check_producer(metadata, request)
    if metadata.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE if partition in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in request.partitions
    }


def _found(shard: TransactionShard, request: Addition) -> TransactionMetadata:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
    metadata = shard.transactions.get(request.transactional_id)
    if metadata is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return metadata


def _check_producer(metadata: TransactionMetadata, request: Addition) -> None:
    if metadata.producer_id != request.producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.epoch != request.producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _check_size(record: CoordinatorRecord, request: Addition, record_bytes_max: int) -> None:
    """A transaction grows with its partitions: the addition is refused, because the end must not be (TXN-TF7)."""
    assert isinstance(record.value, TransactionMetadata)
    about = len(request.transactional_id) * 4 + len(record.value.partitions) * PARTITION_BYTES_MAX
    if about + ROOM_FOR_THE_END_BYTES < record_bytes_max:
        return  # no need to count
    # The level, and with it the version of the end's record, may be another one then: 0 takes more for each topic.
    size = max(sum(len(part or b"") for part in framing.encode(record, version)) for version in framing.VERSIONS)
    size += ROOM_FOR_THE_END_BYTES
    if size > record_bytes_max:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The transaction would have so many partitions that its record of {size} bytes is larger than "
            f"max.message.bytes of __transaction_state ({record_bytes_max}).",
        )
