"""The states of a transactional id, and from which each may be entered (TXN-T1).

Always true: Dead and PrepareEpochFence are never written down; a PrepareCommit never becomes an abort, nor the other way round.
"""

from __future__ import annotations

import enum


class TransactionState(enum.Enum):
    """Kafka's states; the value is what the log calls it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name, as tools print it."""
        return _LABELS[self]

    @property
    def is_prepared(self) -> bool:
        """The decision is written, and not every partition has its marker."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_completed(self) -> bool:
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def may_expire(self) -> bool:
        """Nothing is open and nothing is to be ended."""
        return self is TransactionState.EMPTY or self.is_completed


_LABELS = {state: "".join(part.capitalize() for part in state.name.split("_")) for state in TransactionState}
BY_LABEL = {label: state for state, label in _LABELS.items()}

_AT_REST = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
MAY_FOLLOW: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: _AT_REST | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _AT_REST | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""The states that each may be entered from."""
