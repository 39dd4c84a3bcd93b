"""Where a transactional producer stands between what its application calls.

Always true: what a state says is the sentence for a call that it does not take.
"""

from __future__ import annotations

import enum
from typing import Final


class TransactionalState(enum.Enum):
    UNINITIALISED = "init_transactions comes first"
    INITIALISING = "init_transactions has not ended: call it again"
    READY = "no transaction is open: begin_transaction comes first"
    IN_TRANSACTION = "a transaction is open: end it first"
    COMMITTING = (
        "it is not known yet whether the transaction is committed: "
        "call commit_transaction again, or init_transactions to give it up"
    )
    ABORTING = "the transaction is not aborted yet: call abort_transaction again, or init_transactions to give it up"
    ABORTABLE_ERROR = "the transaction can only be aborted"
    FATAL_ERROR = "this producer can only be closed"


OPEN: Final = frozenset({TransactionalState.IN_TRANSACTION, TransactionalState.COMMITTING})
"""Its records and offsets may still be sent."""
ENDING: Final = frozenset({TransactionalState.COMMITTING, TransactionalState.ABORTING})
