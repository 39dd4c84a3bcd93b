"""EndTxn (26), versions 0-5: commit a transaction, or abort it.

v2 knows PRODUCER_FENCED, which older ones get as INVALID_PRODUCER_EPOCH; v3 is flexible; v4 knows TRANSACTION_ABORTABLE; v5 raises
the producer's epoch and answers what it goes on with (KIP-890).
The answer comes once the decision is committed; markers to the partitions follow it.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.transactions.coordination import coordinate, for_version
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.transactions.ending import Ending
from strandline.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.end_txn import EndTxnRequest, EndTxnResponse

KEY: Final = 26
VERSIONS = range(6)
FENCED_SINCE, BUMPS_SINCE = 2, 5


def handle(request: EndTxnRequest, ctx: RequestContext) -> MaybePending[EndTxnResponse]:
    ending = Ending(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        request.committed,
        2 if ctx.version >= BUMPS_SINCE else 0,
    )

    def reply(code: ErrorCode, producer: ProducerIdAndEpoch = NO_PRODUCER) -> EndTxnResponse:
        response = messages.response(KEY)(error_code=for_version(code, ctx.version, FENCED_SINCE))
        if ctx.version >= BUMPS_SINCE:
            response.producer_id, response.producer_epoch = producer
        return response

    def end(shard: TransactionShard, at: Moment, answer: Callable[[EndTxnResponse], None]) -> CoordinatorResult | None:
        return shard.end(ending, at, lambda code, producer: answer(reply(code, producer)))

    return coordinate(ctx, request.transactional_id, end, reply)
