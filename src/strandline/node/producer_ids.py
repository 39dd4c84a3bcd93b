"""Producer ids for the clients of this broker: from blocks that the active controller hands out.

Always true: an id is given once; a block that was asked for twice, because an answer was lost, leaves a gap and never
an overlap; the next block is asked for before this one is used up, so that no producer waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.controller.producer_ids import PRODUCER_ID_MAX
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.node.controller_channel import ControllerChannel
from strandline.node.logger import Logger
from strandline.wire import messages

ALLOCATE_PRODUCER_IDS = 67
PREFETCH_SHARE = 0.9
"""Of a block is used when the next one is asked for."""
TIMEOUT_S = 5.0


class ProducerIds:
    def __init__(
        self, channel: ControllerChannel, broker_id: int, broker_epoch: Callable[[], int], logger: Logger
    ) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._logger = logger
        self._block = self._next_block = range(0)
        self._given = 0
        """How many of the block are."""
        self._asking: asyncio.Task[str | None] | None = None
        self._loop = asyncio.get_running_loop()

    async def allocate(self) -> int:
        """An id that was never given before. KafkaError: COORDINATOR_LOAD_IN_PROGRESS, which a producer tries again."""
        while (producer_id := self.take()) is None:
            await self.await_one()
        return producer_id

    @property
    def at_hand(self) -> bool:
        return self._given < len(self._block) or bool(self._next_block)

    def take(self) -> int | None:
        """An id that was never given before; None if there is none at hand, and then more are asked for."""
        if self._given >= len(self._block):
            if not self._next_block:
                self._ask_soon()
                return None
            self._block, self._next_block, self._given = self._next_block, range(0), 0
        return self._next()

    async def await_one(self) -> None:
        """Until one is at hand; KafkaError if the controller gives none."""
        while not self.at_hand:
            asking = self._ask_soon()
            # Not awaited itself: a producer that goes away must not take the block away from the others.
            await asyncio.wait([asking])
            problem = "this node is stopping" if asking.cancelled() else asking.result()
            if problem is not None:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids: {problem}")

    def _next(self) -> int:
        producer_id = self._block[self._given]
        self._given += 1
        if self._given >= len(self._block) * PREFETCH_SHARE and not self._next_block:
            self._ask_soon()
        return producer_id

    def _ask_soon(self) -> asyncio.Task[str | None]:
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._ask())
        return self._asking

    async def _ask(self) -> str | None:
        """Have the next block, or say why not."""
        message = messages.request(ALLOCATE_PRODUCER_IDS)(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            response = await self._channel.ask(ALLOCATE_PRODUCER_IDS, message, TIMEOUT_S, retry=True)
        except KafkaError as error:
            return error.message
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            return f"the controller says {code.name}"
        block = range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
        if not block or block[0] < self._block.stop or block.stop > PRODUCER_ID_MAX:
            self._logger.error("the controller gave a block of producer ids that can't be", first=block.start)
            return "the controller gave a block that can't be"
        self._next_block = block
        return None

    async def close(self) -> None:
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
            await asyncio.wait([self._asking])


class NoProducerIds:
    """Those of a node that is no broker."""

    at_hand = False

    async def allocate(self) -> int:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this node is no broker")

    def take(self) -> None:
        return None

    async def await_one(self) -> None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this node is no broker")
