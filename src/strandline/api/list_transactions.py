"""ListTransactions (66), versions 0-2: the transactions that this broker coordinates.

v1 filters by how long they have run; v2 by a pattern that their ids match.
While a partition of `__transaction_state` is still being read back, the answer is COORDINATOR_LOAD_IN_PROGRESS. A state that does
not exist is named in the answer, a pattern that RE2 does not understand is INVALID_REGULAR_EXPRESSION; both as in Kafka.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.coordinator.result import coordinator_error
from strandline.errors import KafkaError
from strandline.groups import regex
from strandline.transactions.listing import ListedTransaction, TransactionFilters, known_states
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_transactions import ListTransactionsRequest, ListTransactionsResponse

KEY: Final = 66
VERSIONS = range(3)
DURATION_SINCE, PATTERN_SINCE = 1, 2


def handle(request: ListTransactionsRequest, ctx: RequestContext) -> MaybePending[ListTransactionsResponse]:
    response = messages.response(KEY)
    states, unknown = known_states(list(request.state_filters))
    pattern = request.transactional_id_pattern if ctx.version >= PATTERN_SINCE else None
    try:
        matches = regex.matcher(pattern) if pattern else None
    except KafkaError as error:
        return response(error_code=error.code)
    filters = TransactionFilters(
        states,
        bool(request.state_filters),
        frozenset(request.producer_id_filters),
        request.duration_filter if ctx.version >= DURATION_SINCE else -1,
        matches,
    )
    later: PendingReply[ListTransactionsResponse] = PendingReply(may_be_overtaken=False)

    def answer(found: list[ListedTransaction]) -> None:
        if not later.done:
            listed = [
                response.TransactionState(
                    transactional_id=one.transactional_id,
                    producer_id=one.producer_id,
                    transaction_state=one.state.label,
                )
                for one in found
            ]
            later.complete(response(unknown_state_filters=unknown, transaction_states=listed))

    def refuse(error: KafkaError) -> None:
        if not later.done:
            later.complete(response(error_code=coordinator_error(error.code), unknown_state_filters=unknown))

    ctx.node.transactions.read_all(lambda shard, at: shard.list(filters, at), answer, refuse)
    return later
