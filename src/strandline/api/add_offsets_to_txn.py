"""AddOffsetsToTxn (25), versions 0-4: offsets of a group will be part of the transaction.

v2 knows PRODUCER_FENCED, which older ones get as INVALID_PRODUCER_EPOCH; v3 is flexible; v4 knows TRANSACTION_ABORTABLE.
What is added is the group's partition of `__consumer_offsets`; clients of `transaction.version` 2 do without.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.placement import partition_of
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.transactions.coordination import coordinate, for_version
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.partitions import Addition
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

KEY: Final = 25
VERSIONS = range(5)
FENCED_SINCE = 2
CONSUMER_OFFSETS = "__consumer_offsets"


def handle(request: AddOffsetsToTxnRequest, ctx: RequestContext) -> MaybePending[AddOffsetsToTxnResponse]:
    def reply(code: ErrorCode) -> AddOffsetsToTxnResponse:
        return messages.response(KEY)(error_code=for_version(code, ctx.version, FENCED_SINCE))

    topic = ctx.node.metadata.image().topics.get(CONSUMER_OFFSETS)
    if topic is None:
        ctx.node.groups.create_topic()
        return reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    place = (CONSUMER_OFFSETS, partition_of(request.group_id, len(topic.partitions)))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    # Of version 0, whatever its client speaks otherwise (TXN-T15).
    addition = Addition(request.transactional_id, producer, frozenset({place}))

    def add(
        shard: TransactionShard, at: Moment, answer: Callable[[AddOffsetsToTxnResponse], None]
    ) -> CoordinatorResult | None:
        return shard.add_partitions(addition, at, lambda code: answer(reply(code)))

    return coordinate(ctx, request.transactional_id, add, reply)
