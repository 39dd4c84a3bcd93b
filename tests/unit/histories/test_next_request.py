"""The next request about a transaction, for faults that are about this very one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from strandline.histories.exchanges import END_TXN, PRODUCE, CoordinatorExchange, HeldConnection
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.requests import next_request


class Requests:
    """What leaves hosts."""

    def __init__(self) -> None:
        self.on_exchange: list[Any] = []

    def see(
        self, api_key: int, *, answered_at: float | None = None, has_connection: bool = True
    ) -> CoordinatorExchange:
        connection = cast(HeldConnection, SimpleNamespace()) if has_connection else None
        exchange = CoordinatorExchange(1, "client", api_key, 5, 0.0, connection)
        exchange.answered_at = answered_at
        for tell in tuple(self.on_exchange):
            tell(exchange)
        return exchange

    async def next(self, api_key: int, within_s: float) -> CoordinatorExchange | None:
        seen = cast(TransactionObservation, self)
        return await next_request(seen, lambda each: each.api_key == api_key, within_s)


async def test_the_first_that_is_wanted_and_whose_connection_is_known_is_returned() -> None:
    requests = Requests()
    waiting = asyncio.ensure_future(requests.next(END_TXN, 60.0))
    await asyncio.sleep(0)
    requests.see(PRODUCE)
    requests.see(END_TXN, has_connection=False)
    wanted = requests.see(END_TXN)
    requests.see(END_TXN)
    assert await waiting is wanted
    assert requests.on_exchange == []


async def test_if_none_comes_in_time_there_is_none() -> None:
    requests = Requests()
    assert await requests.next(END_TXN, 0.0) is None
    assert requests.on_exchange == []
