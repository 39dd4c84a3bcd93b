"""ListTransactions (66), versions 0-2: the transactions that this broker coordinates.

v1 filters by how long they have run; v2 by a pattern that their ids match.
There are none. A state that does not exist is named in the answer, a pattern that RE2 does not understand is
INVALID_REGULAR_EXPRESSION; both as in Kafka.
Left out: transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import KafkaError
from strandline.groups import regex
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_transactions import ListTransactionsRequest, ListTransactionsResponse

KEY: Final = 66
VERSIONS = range(3)

STATES = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "PrepareEpochFence",
        "Dead",
    )
)


def handle(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse:
    response = messages.response(KEY)
    if request.transactional_id_pattern:
        try:
            regex.check(request.transactional_id_pattern)
        except KafkaError as error:
            return response(error_code=error.code)
    return response(unknown_state_filters=[state for state in request.state_filters if state not in STATES])
