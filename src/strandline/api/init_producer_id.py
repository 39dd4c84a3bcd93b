"""InitProducerId (22), versions 0-5: a producer id, so that retries are no duplicates.

v2 is flexible; v3 lets a producer name the id and epoch it has; v4 knows PRODUCER_FENCED, v5 TRANSACTION_ABORTABLE.
Without a transactional id the answer is always a new producer id with epoch 0, whatever id the producer had.
A transactional id gets TRANSACTIONAL_ID_AUTHORIZATION_FAILED until there is a transaction coordinator: every client gives up on
it at once. FindCoordinator, which is asked before, tells the reason; this answer has no place for one.
Left out: transactional ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, KafkaError
from strandline.log.producers import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

KEY: Final = 22
VERSIONS = range(6)


def handle(request: InitProducerIdRequest, ctx: RequestContext) -> MaybePending[InitProducerIdResponse]:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _allocate(ctx)
    if not request.transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= ctx.node.config.transaction_max_timeout_ms:
        return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


async def _allocate(ctx: RequestContext) -> InitProducerIdResponse:
    try:
        producer_id = await ctx.node.allocate_producer_id()
    except KafkaError as error:
        # What a producer may try again has one name here; any other code is the end for it.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error.retriable else error.code)
    return messages.response(KEY)(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return messages.response(KEY)(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
