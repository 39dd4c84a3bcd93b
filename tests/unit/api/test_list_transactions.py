"""ListTransactions on a broker that coordinates no transaction: filters are checked nevertheless."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import list_transactions
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", list_transactions.VERSIONS)
async def test_there_are_none_and_unknown_states_are_named(broker, version):
    reply = await broker.call(list_transactions, version, state_filters=["Ongoing", "Nonsense", "Dead", ""])
    assert (reply.error_code, reply.unknown_state_filters, reply.transaction_states) == (0, ["Nonsense", ""], [])


@pytest.mark.parametrize(
    ("pattern", "error"),
    [("(", ErrorCode.INVALID_REGULAR_EXPRESSION), ("", 0), (None, 0), ("a.*", 0)],
)
async def test_patterns(broker, pattern, error):
    reply = await broker.call(list_transactions, 2, transactional_id_pattern=pattern)
    assert (reply.error_code, reply.transaction_states) == (error, [])
