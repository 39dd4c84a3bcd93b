"""Noise between the steps of transactions: a request comes late, or its answer is lost.

What is late or lost is chosen by its kind, because blind noise hardly ever meets the one request that ends a
transaction, confirms a partition or brings a marker; and what is late mostly comes when it can do most harm: a record
or the leave to write it behind the marker, a marker in the next transaction.

Always true: it breaks no promise, and is over after a few seconds; it is drawn from a stream of its own, and is hushed
with the other noise.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

from strandline.api.add_partitions_to_txn import FOR_BROKERS_SINCE
from strandline.histories.exchanges import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
    CoordinatorExchange,
    NamedPartition,
)
from strandline.histories.fault_injector import FaultInjector
from strandline.histories.shape import host
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedProducer
from strandline.histories.transactions.requests import next_request

PAUSE_S, WITHIN_S = (0.3, 3.0), 5.0
AT_ONCE_MAX = 3
LATE_S, LATE_S_MAX = (0.3, 4.0), 6.0
STEP_S = 0.1
"""So long at most after its moment has come, what is late arrives."""
MEETING_SHARE, MEETING_S, AFTER_S = 0.2, 1.2, (0.02, 0.2)
TIMED_SHARE = 0.3
"""So much of what is late comes at any time."""
LOST = (
    *(END_TXN, WRITE_TXN_MARKERS) * 2,
    *(INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, PRODUCE),
)
LATE = (*(PRODUCE, ADD_PARTITIONS_TO_TXN, WRITE_TXN_MARKERS) * 2, END_TXN)
"""What is there twice is so as often."""


class TransactionNoise:
    def __init__(
        self, seen: TransactionObservation, faults: FaultInjector, seed: int, is_hushed: Callable[[], bool]
    ) -> None:
        self._seen = seen
        self._faults = faults
        self._chance = random.Random(f"{seed}/transactions/noise")
        self._is_hushed = is_hushed
        self._waiting: list[asyncio.Task[None]] = []
        self._produced: dict[tuple[str, str], CoordinatorExchange] = {}
        """The newest Produce of each transactional id to each host."""
        seen.on_exchange.append(self._note_produced)

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                await asyncio.sleep(self._chance.uniform(*PAUSE_S))
                for task in [task for task in self._waiting if task.done()]:
                    self._waiting.remove(task)
                    task.result()
                if len(self._waiting) < AT_ONCE_MAX:
                    self._begin()
        except asyncio.CancelledError:
            for task in self._waiting:
                task.cancel()
            raise

    def _begin(self) -> None:
        chance = self._chance
        kind = chance.random()
        if kind < MEETING_SHARE:
            work = self._have_them_meet(chance.uniform(*AFTER_S))
        elif kind < (1 + MEETING_SHARE) / 2:
            work = self._lose(chance.choice(LOST))
        else:
            api_key, late_s, is_timed = chance.choice(LATE), chance.uniform(*LATE_S), chance.random() < TIMED_SHARE
            # Below version 2 a marker is not sent again while the coordinator is the same: there is no moment.
            is_timed |= api_key == END_TXN or (api_key == WRITE_TXN_MARKERS and self._seen.version == 0)
            work = self._delay(api_key, late_s if is_timed else None)
        self._waiting.append(asyncio.get_running_loop().create_task(work))

    async def _next(
        self, api_key: int, within_s: float = WITHIN_S, *, who: str | None = None, is_answered: bool = False
    ) -> CoordinatorExchange | None:
        """Of the partitions that are added, those that a leader asks about. `is_answered`: it is now."""

        def is_wanted(exchange: CoordinatorExchange) -> bool:
            return (
                exchange.api_key == api_key
                and (exchange.answered_at is not None) == is_answered
                and (api_key != ADD_PARTITIONS_TO_TXN or exchange.version >= FOR_BROKERS_SINCE)
                and (who is None or exchange.who == who)
            )

        found = await next_request(self._seen, is_wanted, within_s)
        return None if self._is_hushed() else found

    async def _lose(self, api_key: int) -> None:
        found = await self._next(api_key)
        if found is not None:
            self._faults.lose_answer(found)

    async def _delay(self, api_key: int, late_s: float | None) -> None:
        """For so long, or until it does most harm. Of a question to a coordinator it is the answer that comes late."""
        found = await self._next(api_key, is_answered=api_key == ADD_PARTITIONS_TO_TXN)
        if found is None:
            return
        if late_s is not None:
            self._faults.delay_request(found, late_s)
            return
        is_moment, loop = self._moment_of(found), asyncio.get_running_loop()
        deadline = loop.time() + LATE_S_MAX
        late = [each for each in (found, *self._waited_for_by(found)) if self._faults.delay_request(each, STEP_S)]
        while late and not is_moment() and loop.time() < deadline and not self._is_hushed():
            for each in late:
                # Whoever waits for what is late does not go away before it has come.
                each.hold(loop.time() + (STEP_S if each is found else 2 * STEP_S))
            await asyncio.sleep(STEP_S / 2)

    def _waited_for_by(self, answer: CoordinatorExchange) -> list[CoordinatorExchange]:
        """Of an answer about partitions: the records that wait for it. Their producer may give them up, and their leader
        does not hear of it."""
        if answer.api_key != ADD_PARTITIONS_TO_TXN:
            return []
        asked = (self._produced.get((each.transactional_id, answer.who)) for each in answer.request.transactions)
        return [each for each in asked if each is not None]

    def _note_produced(self, exchange: CoordinatorExchange) -> None:
        if exchange.api_key == PRODUCE:
            self._produced[exchange.request.transactional_id, host(exchange.broker_id)] = exchange

    def _moment_of(self, late: CoordinatorExchange) -> Callable[[], bool]:
        """Of a marker: the next transaction is open where it is to be written. Of all else: the transaction has ended
        there."""
        counts = [(*each, 0 if (known := self._known(*each)) is None else known.markers) for each in _named(late)]
        is_marker = late.api_key == WRITE_TXN_MARKERS

        def has_come(producer_id: int, name: NamedPartition, count: int) -> bool:
            known = self._known(producer_id, name)
            return known is not None and known.markers > count and (known.is_open or not is_marker)

        return lambda: any(has_come(*each) for each in counts)

    def _known(self, producer_id: int, name: NamedPartition) -> LoggedProducer | None:
        place = self._seen.leader_of(name)
        known = None if place is None else self._seen.logs.get((place.node_id, place.key))
        return None if known is None else known.producers.get(producer_id)

    async def _have_them_meet(self, after_s: float) -> None:
        """A leader gets the marker of a transaction when it has asked about the next one, and has no answer yet."""
        marker = await self._next(WRITE_TXN_MARKERS)
        if marker is None:
            return
        self._faults.delay_request(marker, MEETING_S)
        question = await self._next(ADD_PARTITIONS_TO_TXN, MEETING_S, who=host(marker.broker_id))
        if question is not None:
            left_s = (marker.asked_at + MEETING_S) - question.asked_at
            self._faults.delay_request(question, max(left_s, 0.0) + after_s)


def _named(exchange: CoordinatorExchange) -> Iterator[tuple[int, NamedPartition]]:
    """The producer ids and partitions that it is about."""
    request = exchange.request
    if exchange.api_key == PRODUCE:
        for place, header in request.batches():
            yield header.producer_id, place
    elif exchange.api_key == WRITE_TXN_MARKERS:
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    yield marker.producer_id, (topic.name, index)
    else:
        for transaction in request.transactions:
            for topic in transaction.topics:
                for index in topic.partitions:
                    yield transaction.producer_id, (topic.name, index)
