"""InitProducerId (22), versions 0-5: a producer id, so that retries are no duplicates; with a transactional id also an epoch.

v2 is flexible; v3 lets a producer name the id and epoch it has; v4 knows PRODUCER_FENCED, which older ones get as
INVALID_PRODUCER_EPOCH; v5 knows TRANSACTION_ABORTABLE. v6 is served with `unstable.api.versions.enable`, because Kafka may still
change it: a producer asks for two-phase commit (KIP-939), which needs `transaction.two.phase.commit.enable` (else
TRANSACTIONAL_ID_AUTHORIZATION_FAILED), and its transactions have no timeout.
Without a transactional id the answer is always a new producer id with epoch 0, whatever id the producer had. With one it is the
next epoch, which fences every other producer of this transactional id; a transaction that is open is aborted first, and the
answer is CONCURRENT_TRANSACTIONS until that is done.
Left out: KeepPreparedTxn (UNSUPPORTED_VERSION, as in Kafka 4.3).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.transactions.coordination import coordinate, for_version
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.log.producers import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from strandline.transactions.initialization import Initialization
from strandline.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

KEY: Final = 22
VERSIONS = range(6)
UNSTABLE_VERSIONS = range(6, 7)
FENCED_SINCE = 4


def handle(request: InitProducerIdRequest, ctx: RequestContext) -> MaybePending[InitProducerIdResponse]:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _allocate(ctx)
    if ctx.node.transactions.has_producer_id:
        return _initialize(request, request.transactional_id, ctx)
    return _initialize_later(request, request.transactional_id, ctx)


async def _initialize_later(
    request: InitProducerIdRequest, transactional_id: str, ctx: RequestContext
) -> InitProducerIdResponse:
    """Have a producer id at hand first. It may not be needed; if it is and there is none, the coordinator says so."""
    with contextlib.suppress(KafkaError):
        await ctx.node.transactions.await_producer_id()
    answered: asyncio.Future[InitProducerIdResponse | Exception] = ctx.loop.create_future()
    later = _initialize(request, transactional_id, ctx)
    later.deliver_to(answered.set_result)
    try:
        reply = await answered
    except asyncio.CancelledError:
        later.cancel()
        raise
    if isinstance(reply, Exception):
        raise reply
    return reply


def _initialize(
    request: InitProducerIdRequest, transactional_id: str, ctx: RequestContext
) -> PendingReply[InitProducerIdResponse]:
    def reply(code: ErrorCode, producer: ProducerIdAndEpoch = NO_PRODUCER) -> InitProducerIdResponse:
        return messages.response(KEY)(
            error_code=for_version(code, ctx.version, FENCED_SINCE),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )

    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    initialization = Initialization(
        transactional_id,
        request.transaction_timeout_ms,
        None if expected == NO_PRODUCER else expected,
        enable_two_phase=request.enable2_pc,
        keep_prepared=request.keep_prepared_txn,
    )

    def initialize(
        shard: TransactionShard, at: Moment, answer: Callable[[InitProducerIdResponse], None]
    ) -> CoordinatorResult | None:
        return shard.initialize(initialization, at, lambda code, producer: answer(reply(code, producer)))

    return coordinate(ctx, transactional_id, initialize, reply)


async def _allocate(ctx: RequestContext) -> InitProducerIdResponse:
    try:
        producer_id = await ctx.node.allocate_producer_id()
    except KafkaError as error:
        # What a producer may try again has one name here; any other code is the end for it.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error.retriable else error.code)
    return messages.response(KEY)(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return messages.response(KEY)(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
