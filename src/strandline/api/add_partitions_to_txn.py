"""AddPartitionsToTxn (24), versions 0-5: these partitions are part of the transaction.

Up to v3 producers ask for one transaction; v2 knows PRODUCER_FENCED, which older ones get as INVALID_PRODUCER_EPOCH; v3 is
flexible.
From v4 on it is for brokers: a leader asks for many transactions at once whether a partition is part of them, or has it added
(KIP-890); v5 knows TRANSACTION_ABORTABLE.
All partitions of a transaction are added or none: if one of them does not exist the others get OPERATION_NOT_ATTEMPTED. More than
10,000 at once are INVALID_REQUEST.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.requests.slices import answer
from strandline.api.transactions.coordination import coordinate, for_version
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.metadata.image import INTERNAL_TOPICS
from strandline.sliced_work import Work
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.partitions import Addition
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

KEY: Final = 24
VERSIONS = range(6)
FENCED_SINCE = 2
FOR_BROKERS_SINCE = 4
"""Older ones are of clients (TXN-T15)."""
PARTITIONS_MAX = 10_000
"""Of one transaction in one request: as many as a Produce may have. The coordinator takes them in one step (SEC-L2)."""


def handle(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> MaybePending[AddPartitionsToTxnResponse]:
    if ctx.version < FOR_BROKERS_SINCE:
        return answer(_of_client(request, ctx), request, ctx)
    if not ctx.may_act_as_broker:
        return messages.response(KEY)(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return answer(_of_broker(request, ctx), request, ctx)


def _of_client(
    request: AddPartitionsToTxnRequest, ctx: RequestContext
) -> Work[MaybePending[AddPartitionsToTxnResponse]]:
    results = yield from _results(request.v3_and_below_topics)
    reply = messages.response(KEY)(results_by_topic_v3_and_below=results.topics)
    if (yield from results.refuse(ctx)):
        return reply
    addition = Addition(
        request.v3_and_below_transactional_id,
        ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        frozenset(results.by_partition),
    )

    def for_all(code: ErrorCode) -> AddPartitionsToTxnResponse:
        results.fill(for_version(code, ctx.version, FENCED_SINCE))
        return reply

    def add(
        shard: TransactionShard, at: Moment, answer: Callable[[AddPartitionsToTxnResponse], None]
    ) -> CoordinatorResult | None:
        return shard.add_partitions(addition, at, lambda code: answer(for_all(code)))

    return coordinate(ctx, addition.transactional_id, add, for_all)


def _of_broker(
    request: AddPartitionsToTxnRequest, ctx: RequestContext
) -> Work[MaybePending[AddPartitionsToTxnResponse]]:
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
        results = yield from _results(asked.topics)
        reply.results_by_transaction.append(
            response.AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=results.topics)
        )
        if not (yield from results.refuse(ctx)):
            left += 1
            _ask(asked, results, ctx, settle)
        yield 0
    settle()
    return later


def _ask(
    asked: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction,
    results: _Results,
    ctx: RequestContext,
    settle: Callable[[], None],
) -> None:
    addition = Addition(
        asked.transactional_id,
        ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch),
        frozenset(results.by_partition),
        transaction_version=2,
    )
    transactions = ctx.node.transactions

    def for_all(code: ErrorCode) -> None:
        results.fill(code)
        settle()

    def for_each(codes: Mapping[TopicPartition, ErrorCode]) -> None:
        for place, code in codes.items():
            results.by_partition[place].partition_error_code = code
        settle()

    def refuse(error: KafkaError) -> None:
        for_all(coordinator_error(error.code))

    if asked.verify_only:
        transactions.read(addition.transactional_id, lambda shard, at: shard.verify(addition), for_each, refuse)
    else:
        transactions.write(
            addition.transactional_id, lambda shard, at: shard.add_partitions(addition, at, for_all), refuse
        )


class _Results:
    """The answers for the partitions of one transaction, each once, however often it is named."""

    def __init__(self) -> None:
        self.topics: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = []
        self.by_partition: dict[TopicPartition, AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = {}

    def refuse(self, ctx: RequestContext) -> Work[bool]:
        """Whether they are refused without a look at the transaction: too many, or one of them can't be added (TXN-T16)."""
        if len(self.by_partition) > PARTITIONS_MAX:
            for result in self.by_partition.values():
                result.partition_error_code = ErrorCode.INVALID_REQUEST
                yield 0
            return True
        is_one_refused = False
        for place, result in self.by_partition.items():
            if code := _why_not(place, ctx):
                is_one_refused = True
                result.partition_error_code = code
            yield 0
        if is_one_refused:
            for result in self.by_partition.values():
                if not result.partition_error_code:
                    result.partition_error_code = ErrorCode.OPERATION_NOT_ATTEMPTED
                yield 0
        return is_one_refused

    def fill(self, code: ErrorCode) -> None:
        for result in self.by_partition.values():
            result.partition_error_code = code


def _why_not(place: TopicPartition, ctx: RequestContext) -> ErrorCode:
    # The marker would go into the log of a coordinator. A group's partition is added by AddOffsetsToTxn, or by its leader.
    if ctx.version < FOR_BROKERS_SINCE and place[0] in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if ctx.node.metadata.image().partition(*place) is None else ErrorCode.NONE
    )


def _results(topics: Iterable[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]) -> Work[_Results]:
    response = messages.response(KEY)
    results = _Results()
    by_name: dict[str, AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = {}
    for topic in topics:
        of_topic = by_name.get(topic.name)
        if of_topic is None:
            of_topic = by_name[topic.name] = response.AddPartitionsToTxnTopicResult(name=topic.name)
            results.topics.append(of_topic)
        for index in topic.partitions:
            place = (topic.name, index)
            if place not in results.by_partition:
                result = response.AddPartitionsToTxnPartitionResult(partition_index=index)
                results.by_partition[place] = result
                of_topic.results_by_partition.append(result)
            yield 0
        yield 0
    return results
