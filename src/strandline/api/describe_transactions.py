"""DescribeTransactions (65), version 0: transactional ids, the state of their transactions, and what these write to.

Of a transaction that is being ended, the partitions are those that have no marker yet.
Left out: nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.requests.slices import answer
from strandline.coordinator.result import Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.sliced_work import Work
from strandline.transactions.listing import TransactionDescription
from strandline.transactions.shard import TransactionShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

KEY: Final = 65
VERSIONS = range(1)
PARTITION_BYTES = 4


def handle(request: DescribeTransactionsRequest, ctx: RequestContext) -> MaybePending[DescribeTransactionsResponse]:
    return answer(_describe_all(request, ctx), request, ctx)


def _describe_all(
    request: DescribeTransactionsRequest, ctx: RequestContext
) -> Work[MaybePending[DescribeTransactionsResponse]]:
    response = messages.response(KEY)
    reply = response()
    later: PendingReply[DescribeTransactionsResponse] = PendingReply(may_be_overtaken=False)
    left = 1

    def settle() -> None:
        nonlocal left
        left -= 1
        if not left and not later.done:
            later.complete(reply)

    for transactional_id in dict.fromkeys(request.transactional_ids):
        state = response.TransactionState(transactional_id=transactional_id)
        reply.transaction_states.append(state)
        left += 1

        def done(found: TransactionDescription, state: DescribeTransactionsResponse.TransactionState = state) -> None:
            _fill(state, found)
            settle()

        def refuse(error: KafkaError, state: DescribeTransactionsResponse.TransactionState = state) -> None:
            state.error_code = coordinator_error(error.code)
            settle()

        if transactional_id:
            ctx.node.transactions.read(transactional_id, _describing(transactional_id), done, refuse)
        else:
            refuse(KafkaError(ErrorCode.INVALID_REQUEST))
        yield sum(len(topic.topic) + PARTITION_BYTES * len(topic.partitions) for topic in state.topics)
    settle()
    return later


def _describing(transactional_id: str) -> Callable[[TransactionShard, Moment], TransactionDescription]:
    return lambda shard, at: shard.describe(transactional_id)


def _fill(state: DescribeTransactionsResponse.TransactionState, found: TransactionDescription) -> None:
    metadata = found.metadata
    state.transaction_state = metadata.state.label
    state.transaction_timeout_ms = metadata.timeout_ms
    state.transaction_start_time_ms = metadata.start_ms
    state.producer_id, state.producer_epoch = metadata.producer
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(found.partitions):
        topics[topic].append(index)
    state.topics = [
        messages.response(KEY).TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()
    ]
