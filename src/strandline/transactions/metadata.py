"""What the coordinator knows of one transactional id, and the transitions between its states (TXN-T1, TXN-T10 to TXN-T13,
TXN-T20 to TXN-T23).

    ended = metadata.ended(commit=True, transaction_version=2, next_producer_id=NO_PRODUCER_ID, wall_ms=now)

Always true: an object never changes; a transition gives another one, and names the producer id before it as the previous one.
Epoch 32767 is for fencing alone: no client is ever given it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from strandline.coordinator.record import CoordinatorValue
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.records.control import EPOCH_BUMPING_VERSION, EPOCH_MAX
from strandline.transactions.states import MAY_FOLLOW, TransactionState

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a transaction with two-phase commit, which is never over (TXN-T28, TXN-Q1)."""


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata(CoordinatorValue):
    """The state of a transactional id; what the log does not keep is excluded from comparisons."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    epoch: int
    last_epoch: int = field(default=NO_PRODUCER_EPOCH, compare=False)
    """The epoch that a client may repeat its InitProducerId with (TXN-T8); not written down."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    update_ms: int
    transaction_version: int = 0
    """The client's, of the newest transaction."""
    started_s: float = field(default=math.inf, compare=False)
    """When this coordinator saw the transaction begin, monotonic seconds (TXN-T28); not written down."""

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.epoch)

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == NO_TIMEOUT_MS

    # Transitions

    def initialized(self, expected_epoch: int | None, timeout_ms: int, wall_ms: int) -> TransactionMetadata:
        """The next epoch of this producer, or the current one again for a request that is repeated (TXN-T12)."""
        if expected_epoch is None:
            epoch, last_epoch = self.epoch + 1, NO_PRODUCER_EPOCH
        elif self.epoch == NO_PRODUCER_EPOCH or expected_epoch == self.epoch:
            epoch, last_epoch = self.epoch + 1, self.epoch
        elif expected_epoch == self.last_epoch:
            repeated = self._at_rest(self.producer_id, self.epoch, self.last_epoch, timeout_ms, wall_ms)
            # The producer id before stays that: the request may come once more, with a pair of it (TXN-T10).
            return replace(repeated, previous_producer_id=self.previous_producer_id)
        else:
            raise KafkaError(
                ErrorCode.PRODUCER_FENCED, f"The producer's epoch is {self.epoch} now, not {expected_epoch}."
            )
        assert epoch < EPOCH_MAX, "an exhausted epoch needs another producer id"
        return self._at_rest(self.producer_id, epoch, last_epoch, timeout_ms, wall_ms)

    def rotated(self, producer_id: int, timeout_ms: int, wall_ms: int, *, is_continued: bool) -> TransactionMetadata:
        """Another producer id, because the epochs of this one are used up (TXN-T13)."""
        last_epoch = self.epoch if is_continued else NO_PRODUCER_EPOCH
        return self._at_rest(producer_id, 0, last_epoch, timeout_ms, wall_ms)

    def _at_rest(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, wall_ms: int
    ) -> TransactionMetadata:
        return self._to(
            TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            update_ms=wall_ms,
            next_producer_id=NO_PRODUCER_ID,
            started_s=math.inf,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], transaction_version: int, wall_ms: int, now: float
    ) -> TransactionMetadata:
        """These partitions are part of the transaction, which begins if none is open (TXN-T17)."""
        is_open = self.state is TransactionState.ONGOING
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions.union(added),
            start_ms=self.start_ms if is_open else wall_ms,
            started_s=self.started_s if is_open else now,
            update_ms=wall_ms,
            next_producer_id=NO_PRODUCER_ID,
            transaction_version=transaction_version,
        )

    def ended(
        self, *, commit: bool, transaction_version: int, next_producer_id: int, wall_ms: int
    ) -> TransactionMetadata:
        """The decision; the client's epoch is raised with it from version 2 on (TXN-T21, TXN-T23)."""
        epoch, last_epoch = self.epoch, self.last_epoch
        if transaction_version >= EPOCH_BUMPING_VERSION:
            epoch, last_epoch = min(self.epoch + 1, EPOCH_MAX), self.epoch
        is_open = self.state is TransactionState.ONGOING
        return self._to(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            epoch=epoch,
            last_epoch=last_epoch,
            next_producer_id=next_producer_id,
            start_ms=self.start_ms if is_open else wall_ms,
            update_ms=wall_ms,
            transaction_version=transaction_version,
            started_s=math.inf,
        )

    def fenced(self, wall_ms: int) -> TransactionMetadata:
        """Aborted below version 2 by the coordinator: the abort has an epoch that the client never gets (TXN-T11)."""
        return self._to(
            TransactionState.PREPARE_ABORT,
            epoch=min(self.epoch + 1, EPOCH_MAX),
            last_epoch=NO_PRODUCER_EPOCH,
            update_ms=wall_ms,
            next_producer_id=NO_PRODUCER_ID,
            transaction_version=0,
            started_s=math.inf,
        )

    def completed(self, wall_ms: int) -> TransactionMetadata:
        """Every partition has its marker (TXN-T23, TXN-T34)."""
        is_rotated = self.transaction_version >= EPOCH_BUMPING_VERSION and self.next_producer_id != NO_PRODUCER_ID
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        return self._to(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if is_rotated else self.producer_id,
            epoch=0 if is_rotated else self.epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            update_ms=wall_ms,
        )

    @property
    def after_completion(self) -> ProducerIdAndEpoch:
        """What the client goes on with once this is complete; the answer to EndTxn of version 2 (TXN-T21, TXN-T23)."""
        return self.completed(self.update_ms).producer if self.state.is_prepared else self.producer

    def _to(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        assert self.state in MAY_FOLLOW[state], f"{self.state.label} never becomes {state.label}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]


def created(producer_id: int, timeout_ms: int, wall_ms: int) -> TransactionMetadata:
    """That of a transactional id that is seen for the first time, before its first transition (TXN-T10)."""
    return TransactionMetadata(
        producer_id=producer_id,
        epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        update_ms=wall_ms,
    )
