"""EndTxn, and the coordinator's own aborts: the decision (TXN-T19 to TXN-T24, TXN-T11, TXN-T28).

Always true: a decision that was appended stays, whatever becomes of its append (TXN-T3); it is answered once it is committed, and
from then on its markers are sent (TXN-T24, TXN-T30). Who asks for it is known by the pair alone (TXN-Q3), in which
version by the request, whatever the level of the cluster is (TXN-T47).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.records.control import EPOCH_BUMPING_VERSION, EPOCH_MAX
from strandline.transactions import completion, initialization, journal
from strandline.transactions.metadata import (
    NO_PRODUCER,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TransactionMetadata,
    is_exhausted,
)
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.transactions.initialization import ProducerAnswer
    from strandline.transactions.partitions import CodeAnswer
    from strandline.transactions.shard import TransactionShard


class Ending(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    transaction_version: int
    """2 for EndTxn 5, else 0: the request's version decides (TXN-T19)."""


def end(shard: TransactionShard, request: Ending, at: Moment, answer: ProducerAnswer) -> CoordinatorResult | None:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
    metadata = shard.transactions.get(request.transactional_id)
    if metadata is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.transaction_version >= EPOCH_BUMPING_VERSION:
        is_over = _is_over_with_bump(metadata, request)
        producer = metadata.producer
    else:
        is_over = _is_over(metadata, request)
        producer = NO_PRODUCER
    if is_over:
        return CoordinatorResult([], lambda code, at: _answer(answer, code, producer))
    return _decide(shard, request, metadata, at, answer)


def _is_over(metadata: TransactionMetadata, request: Ending) -> bool:
    """Below version 2: the same end again is an answer; the epoch has to be the current one (TXN-T20, TXN-TF5)."""
    if metadata.producer_id != request.producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.epoch != request.producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if metadata.state is TransactionState.ONGOING:
        return False
    _check_same_end(metadata, request)
    return True


def _is_over_with_bump(metadata: TransactionMetadata, request: Ending) -> bool:
    """From version 2 on: an epoch that is one behind says that the request was sent before (TXN-T21)."""
    if metadata.state.is_prepared:
        # Before the pair is looked at: its producer was answered already, and goes on with the next epoch or producer id.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    epoch = request.producer.epoch
    over_the_top = (
        metadata.previous_producer_id == request.producer.producer_id
        and epoch == EPOCH_MAX - 1
        and metadata.epoch == 0
        and metadata.producer_id != request.producer.producer_id
    )
    if metadata.producer_id != request.producer.producer_id and not over_the_top:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeated = metadata.epoch == epoch + 1 or over_the_top
    is_current = metadata.epoch == epoch and not over_the_top
    is_valid = is_current or (is_repeated and metadata.state.is_completed)
    if not is_valid:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if metadata.state is TransactionState.ONGOING:
        return False
    if not is_repeated:
        # The client does not know what reached the coordinator: an abort of nothing is taken, and raises the epoch (TXN-T22).
        if request.commit:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"The transaction is {metadata.state.label}.")
        return False
    _check_same_end(metadata, request)
    return True


def _check_same_end(metadata: TransactionMetadata, request: Ending) -> None:
    state = metadata.state
    commit_states = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    abort_states = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
    if state not in (commit_states if request.commit else abort_states):
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"The transaction is {state.label}.")
    if state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _decide(
    shard: TransactionShard, request: Ending, metadata: TransactionMetadata, at: Moment, answer: ProducerAnswer
) -> CoordinatorResult:
    version = request.transaction_version
    decided = metadata.ended(
        commit=request.commit,
        transaction_version=version,
        next_producer_id=_next_producer_id(shard, metadata, version),
        wall_ms=at.wall_ms,
    )
    producer = decided.after_completion if version >= EPOCH_BUMPING_VERSION else NO_PRODUCER
    return _decision(shard, request.transactional_id, decided, lambda code: _answer(answer, code, producer))


def abort(
    shard: TransactionShard, transactional_id: str, at: Moment, answer: CodeAnswer, why: str
) -> CoordinatorResult:
    """The coordinator's own abort of an open transaction, which fences its producer; the cluster's level decides how. `why` is for
    the journal."""
    metadata = shard.transactions[transactional_id]
    version = shard.dependencies.transaction_version
    if version >= EPOCH_BUMPING_VERSION:
        decided = metadata.ended(
            commit=False,
            transaction_version=version,
            next_producer_id=_next_producer_id(shard, metadata, version),
            wall_ms=at.wall_ms,
        )
    else:
        decided = metadata.fenced(at.wall_ms)
    return _decision(shard, transactional_id, decided, answer, why)


def _next_producer_id(shard: TransactionShard, metadata: TransactionMetadata, version: int) -> int:
    """Another one if this end uses up the epochs (TXN-T23)."""
    if version < EPOCH_BUMPING_VERSION or not is_exhausted(metadata.epoch):
        return NO_PRODUCER_ID
    return initialization.new_producer_id(shard)


def _decision(
    shard: TransactionShard,
    transactional_id: str,
    decided: TransactionMetadata,
    answer: CodeAnswer,
    why: str | None = None,
) -> CoordinatorResult:
    def committed(at: Moment) -> None:
        completion.begin(shard, transactional_id, decided, at)
        if why is not None:
            journal.aborted(shard, transactional_id, decided, why)

    return CoordinatorResult(
        [transaction_record(transactional_id, decided)], lambda code, at: answer(code), committed=committed
    )


def _answer(answer: ProducerAnswer, code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
    if code:
        answer(coordinator_error(code), NO_PRODUCER)
    else:
        answer(ErrorCode.NONE, producer)
