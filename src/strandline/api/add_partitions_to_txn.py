"""AddPartitionsToTxn (24), versions 0-5: these partitions are part of the transaction.

Up to v3 producers ask for one transaction; v2 knows PRODUCER_FENCED, which older ones get as INVALID_PRODUCER_EPOCH; v3 is
flexible.
From v4 on it is for brokers: a leader asks for many transactions at once whether a partition is part of them, or has it added
(KIP-890); v5 knows TRANSACTION_ABORTABLE.
All partitions of a transaction are added or none: if one of them does not exist the others get OPERATION_NOT_ATTEMPTED.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.transactions.coordination import coordinate, for_version
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.metadata.image import INTERNAL_TOPICS
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.partitions import Addition
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

KEY: Final = 24
VERSIONS = range(6)
FENCED_SINCE, FOR_BROKERS_SINCE = 2, 4
Codes = Mapping[TopicPartition, ErrorCode]


def handle(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> MaybePending[AddPartitionsToTxnResponse]:
    if ctx.version < FOR_BROKERS_SINCE:
        return _of_client(request, ctx)
    if not ctx.may_act_as_broker:
        return messages.response(KEY)(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return _of_broker(request, ctx)


def _of_client(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> MaybePending[AddPartitionsToTxnResponse]:
    partitions = _partitions(request.v3_and_below_topics)

    def reply(codes: Codes) -> AddPartitionsToTxnResponse:
        return messages.response(KEY)(results_by_topic_v3_and_below=_topics(codes))

    def for_all(code: ErrorCode) -> AddPartitionsToTxnResponse:
        return reply(dict.fromkeys(partitions, for_version(code, ctx.version, FENCED_SINCE)))

    if refused := _refused(partitions, ctx):
        return reply(refused)
    addition = Addition(
        request.v3_and_below_transactional_id,
        ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        frozenset(partitions),
    )

    def add(
        shard: TransactionShard, at: Moment, answer: Callable[[AddPartitionsToTxnResponse], None]
    ) -> CoordinatorResult | None:
        return shard.add_partitions(addition, at, lambda code: answer(for_all(code)))

    return coordinate(ctx, addition.transactional_id, add, for_all)


def _of_broker(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> MaybePending[AddPartitionsToTxnResponse]:
    response = messages.response(KEY)
    reply = response()
    later: PendingReply[AddPartitionsToTxnResponse] = PendingReply(may_be_overtaken=False)
    left = 1

    def settle() -> None:
        nonlocal left
        left -= 1
        if not left and not later.done:
            later.complete(reply)

    for asked in request.transactions:
        result = response.AddPartitionsToTxnResult(transactional_id=asked.transactional_id)
        reply.results_by_transaction.append(result)
        left += 1

        def done(codes: Codes, result: AddPartitionsToTxnResponse.AddPartitionsToTxnResult = result) -> None:
            result.topic_results = _topics(codes)
            settle()

        _ask(asked, ctx, done)
    settle()
    return later


def _ask(
    asked: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction, ctx: RequestContext, done: Callable[[Codes], None]
) -> None:
    partitions = _partitions(asked.topics)
    addition = Addition(
        asked.transactional_id,
        ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch),
        frozenset(partitions),
        transaction_version=2,
    )
    transactions = ctx.node.transactions

    def for_all(code: ErrorCode) -> None:
        done(dict.fromkeys(partitions, code))

    def refuse(error: KafkaError) -> None:
        for_all(coordinator_error(error.code))

    if refused := _refused(partitions, ctx):
        done(refused)
    elif asked.verify_only:
        transactions.read(addition.transactional_id, lambda shard, at: shard.verify(addition), done, refuse)
    else:
        transactions.write(
            addition.transactional_id, lambda shard, at: shard.add_partitions(addition, at, for_all), refuse
        )


def _partitions(topics: Iterable[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return list(dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions))


def _refused(partitions: list[TopicPartition], ctx: RequestContext) -> Codes | None:
    """The answer if one of them can't be added (TXN-T16)."""
    codes = {place: _why_not(place, ctx) or ErrorCode.OPERATION_NOT_ATTEMPTED for place in partitions}
    return codes if set(codes.values()) - {ErrorCode.OPERATION_NOT_ATTEMPTED} else None


def _why_not(place: TopicPartition, ctx: RequestContext) -> ErrorCode:
    # The marker would go into the log of a coordinator. A group's partition is added by AddOffsetsToTxn, or by its leader.
    if ctx.version < FOR_BROKERS_SINCE and place[0] in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if ctx.node.metadata.image().partition(*place) is None else ErrorCode.NONE
    )


def _topics(codes: Codes) -> list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    response = messages.response(KEY)
    topics: dict[str, AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in sorted(codes.items()):
        topic = topics.setdefault(name, response.AddPartitionsToTxnTopicResult(name=name))
        topic.results_by_partition.append(
            response.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(topics.values())
