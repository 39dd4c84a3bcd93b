"""From a request about a transactional id to its coordinator in this node, and back with the answer.

Always true: every request is answered once; an answer for a connection that is gone goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import PendingReply
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.transactions.shard import TransactionShard

R = TypeVar("R")
Operation = Callable[[TransactionShard, Moment, Callable[[R], None]], CoordinatorResult | None]


def coordinate(
    ctx: RequestContext, transactional_id: str, operation: Operation[R], refusal: Callable[[ErrorCode], R]
) -> PendingReply[R]:
    """Have an operation done for this transactional id; the promise of its answer."""
    later: PendingReply[R] = PendingReply(may_be_overtaken=False)

    def answer(response: R) -> None:
        if not later.done:
            later.complete(response)

    def refuse(error: KafkaError) -> None:
        answer(refusal(coordinator_error(error.code)))

    if not transactional_id:
        return _refused(later, refusal(ErrorCode.INVALID_REQUEST))
    ctx.node.transactions.write(transactional_id, lambda shard, at: operation(shard, at, answer), refuse)
    return later


def _refused(later: PendingReply[R], response: R) -> PendingReply[R]:
    later.complete(response)
    return later


def for_version(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """Clients of older versions know no PRODUCER_FENCED: it is INVALID_PRODUCER_EPOCH for them (TXN-T14)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
