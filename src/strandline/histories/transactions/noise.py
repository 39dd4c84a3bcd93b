"""Noise between the steps of transactions: a request comes late, or its answer is lost.

What is late or lost is chosen by its kind, because blind noise hardly ever meets the one request that ends a
transaction, confirms a partition or brings a marker.

Always true: it breaks no promise, and is over after a few seconds; it is drawn from a stream of its own, and is hushed
with the other noise.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from strandline.histories.exchanges import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
    CoordinatorExchange,
)
from strandline.histories.fault_injector import FaultInjector
from strandline.histories.judges.transactions.answered_is_committed import FOR_BROKERS_SINCE
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.plan import TransactionPlan
from strandline.histories.transactions.requests import next_request

PAUSE_S, WITHIN_S = (0.5, 4.0), 5.0
LATE_S = (0.3, 5.0)
SHORTLY_S = (0.05, 0.8)
"""So long after its sender has given up, what is late arrives."""
LOST = (END_TXN, END_TXN, WRITE_TXN_MARKERS, WRITE_TXN_MARKERS, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN)
LOST += (ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, PRODUCE)
LATE = (PRODUCE, PRODUCE, ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS_TO_TXN, WRITE_TXN_MARKERS, WRITE_TXN_MARKERS, END_TXN)


class TransactionNoise:
    def __init__(
        self,
        seen: TransactionObservation,
        plan: TransactionPlan,
        faults: FaultInjector,
        seed: int,
        is_hushed: Callable[[], bool],
    ) -> None:
        self._seen = seen
        self._plan = plan
        self._faults = faults
        self._chance = random.Random(f"{seed}/transactions/noise")
        self._is_hushed = is_hushed

    async def run(self) -> None:
        """Until it is cancelled."""
        chance = self._chance
        while True:
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            is_lost = chance.random() < 0.5
            api_key = chance.choice(LOST if is_lost else LATE)
            late_s = self._draw_late_s(api_key)
            found = await next_request(self._seen, lambda each: _is_one(each, api_key), WITHIN_S)  # noqa: B023
            if found is None or found.connection is None or self._is_hushed():
                continue
            if is_lost:
                self._faults.lose_answer(found)
            else:
                self._faults.delay_request(found, late_s)

    def _draw_late_s(self, api_key: int) -> float:
        """Any time; or so long that whoever sent it has just given up, sent it again, and gone on."""
        plan, chance = self._plan, self._chance
        waits_ms = plan.broker_request_ms if api_key == WRITE_TXN_MARKERS else plan.request_ms
        late_s, shortly_s = chance.uniform(*LATE_S), waits_ms / 1000 + chance.uniform(*SHORTLY_S)
        return shortly_s if shortly_s < LATE_S[1] and chance.random() < 0.7 else late_s


def _is_one(exchange: CoordinatorExchange, api_key: int) -> bool:
    """Of the partitions that are added, those that a leader asks about."""
    is_of_broker = exchange.version >= FOR_BROKERS_SINCE
    return exchange.api_key == api_key and (api_key != ADD_PARTITIONS_TO_TXN or is_of_broker)
