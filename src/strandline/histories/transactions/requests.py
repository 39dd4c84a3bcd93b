"""The next request about a transaction of some kind, or the next answer to one, for faults that are about this very one.

Always true: it is returned before the last byte has arrived, and looking changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.histories.exchanges import CoordinatorExchange
from strandline.histories.transactions.observation import TransactionObservation

Wanted = Callable[[CoordinatorExchange], bool]


async def next_request(seen: TransactionObservation, wanted: Wanted, within_s: float) -> CoordinatorExchange | None:
    """None if none comes in this virtual time."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[CoordinatorExchange | None] = loop.create_future()

    def hear(exchange: CoordinatorExchange) -> None:
        if not found.done() and exchange.connection is not None and wanted(exchange):
            found.set_result(exchange)

    timer = loop.call_later(within_s, lambda: None if found.done() else found.set_result(None))
    seen.on_exchange.append(hear)
    try:
        return await found
    finally:
        timer.cancel()
        seen.on_exchange.remove(hear)
