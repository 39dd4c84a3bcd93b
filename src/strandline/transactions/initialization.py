"""InitProducerId of a transactional id: the next epoch, which fences every older one (TXN-T9 to TXN-T13), and whether its
transactions have a timeout (TXN-Q1).

Always true: a pair of producer id and epoch is answered once its record is committed, to one client; a transaction that is open
is aborted first, and its client is asked to come again (TXN-T11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.transactions import ending
from strandline.transactions.metadata import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    NO_TIMEOUT_MS,
    ProducerIdAndEpoch,
    TransactionMetadata,
    created,
    is_exhausted,
)
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.transactions.shard import TransactionShard

ProducerAnswer = Callable[[ErrorCode, ProducerIdAndEpoch], None]
"""Takes the error, or NONE and what the producer goes on with."""
TRANSACTIONAL_ID_BYTES_MAX = 2**15 - 1
"""The key of a record in the log has its length in 16 bits."""


class Initialization(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    enable_two_phase: bool = False
    keep_prepared: bool = False


def initialize(
    shard: TransactionShard, request: Initialization, at: Moment, answer: ProducerAnswer
) -> CoordinatorResult | None:
    timeout_ms = _validated_timeout_ms(shard, request)
    found = shard.transactions.get(request.transactional_id)
    if found is None:
        found = created(new_producer_id(shard), timeout_ms, at.wall_ms)
    if found.state.is_prepared:
        # Before the pair is looked at: after the last epoch its producer comes with the next producer id already (TXN-T23).
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer_id(found, request.expected)
    if found.state is TransactionState.ONGOING:
        why = "another producer took over its transactional id"
        return ending.abort(
            shard, request.transactional_id, at, lambda code: answer(_come_again(code), NO_PRODUCER), why
        )
    metadata = _next(shard, found, request, timeout_ms, at)

    def done(code: ErrorCode, at: Moment) -> None:
        if code:
            answer(coordinator_error(code), NO_PRODUCER)
        else:
            answer(ErrorCode.NONE, metadata.producer)

    return CoordinatorResult([transaction_record(request.transactional_id, metadata)], done)


def _come_again(code: ErrorCode) -> ErrorCode:
    return coordinator_error(code) if code else ErrorCode.CONCURRENT_TRANSACTIONS


def _validated_timeout_ms(shard: TransactionShard, request: Initialization) -> int:
    config = shard.dependencies.config
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
    if len(request.transactional_id.encode()) > TRANSACTIONAL_ID_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The transactional id is longer than {TRANSACTIONAL_ID_BYTES_MAX} bytes."
        )
    if request.enable_two_phase and not config.transaction_two_phase_commit_enable:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "Two-phase commit is not enabled (transaction.two.phase.commit.enable).",
        )
    if request.keep_prepared:
        # What Kafka will answer is not settled (TXN-Q2).
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "A prepared transaction can't be kept yet (KIP-939).")
    if request.enable_two_phase:
        return NO_TIMEOUT_MS
    if not 0 < request.timeout_ms <= config.transaction_max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"The transaction timeout is {request.timeout_ms} ms; it must be above 0 and at most "
            f"{config.transaction_max_timeout_ms} ms (transaction.max.timeout.ms).",
        )
    return request.timeout_ms


def _check_producer_id(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> None:
    """The client knows the producer id, or the one before whose epochs are used up (TXN-T10)."""
    if expected is None or metadata.epoch == NO_PRODUCER_EPOCH or expected.producer_id == metadata.producer_id:
        return
    if expected.producer_id == metadata.previous_producer_id and is_exhausted(expected.epoch):
        return
    raise KafkaError(
        ErrorCode.PRODUCER_FENCED, f"The producer id is {metadata.producer_id} now, not {expected.producer_id}."
    )


def _next(
    shard: TransactionShard, found: TransactionMetadata, request: Initialization, timeout_ms: int, at: Moment
) -> TransactionMetadata:
    expected_epoch = None if request.expected is None else request.expected.epoch
    if is_exhausted(found.epoch) and expected_epoch in (None, found.epoch):
        return found.rotated(new_producer_id(shard), timeout_ms, at.wall_ms, is_continued=request.expected is not None)
    if is_exhausted(found.epoch) and expected_epoch != found.last_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return found.initialized(expected_epoch, timeout_ms, at.wall_ms)


def new_producer_id(shard: TransactionShard) -> int:
    producer_id = shard.dependencies.take_producer_id()
    if producer_id is None:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "There is no producer id yet.")
    return producer_id
