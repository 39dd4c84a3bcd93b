"""A queue of what this broker has the active controller decide about its partitions: each entry is sent until it is
decided.

What goes into a request and what its answer means is said by each queue (`isr_updates.py`, `dir_assignments.py`).

Always true: one request is in flight at a time, on a connection of the queue's own; without a decision an entry is sent
again, after a pause that doubles with each failure in a row; once the queue is closed nothing is sent any more.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import Uuid
from strandline.node.controller_channel import ControllerChannel, top_level_error
from strandline.node.logger import Logger

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

E = TypeVar("E")
R = TypeVar("R", bound="ApiResponse")
Place = tuple[Uuid, int]
"""Topic id and index of a partition."""

TIMEOUT_S = 30.0
"""For one request. Another leader of the quorum ends it before."""
DOUBLINGS_MAX = 10


class DecisionQueue(ABC, Generic[E, R]):
    api_key: ClassVar[int]
    purpose: ClassVar[str]
    """Of the connection."""
    content: ClassVar[str]
    """What is decided, for the log."""
    backoff_min_s: ClassVar[float]
    backoff_max_s: ClassVar[float]

    def __init__(
        self,
        channel: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
        randomness: random.Random,
        logger: Logger,
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._randomness = randomness
        self._logger = logger
        self._on_task_ended = on_task_ended
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False
        self._loop = asyncio.get_running_loop()

    @abstractmethod
    def _has_waiting(self) -> bool:
        """Whether there may be something to send."""

    @abstractmethod
    def _take(self) -> dict[Place, E]:
        """The oldest entries that are still worth sending, as many as fit into one request."""

    @abstractmethod
    def _request(self, asked: Mapping[Place, E]) -> ApiRequest[R]: ...

    @abstractmethod
    def _settle(self, asked: Mapping[Place, E], response: R | None) -> bool:
        """Take up what was decided (None: nothing, the request as a whole failed). Whether that was all of it; what was
        not decided waits again."""

    def _pause_s(self, failures: int) -> float:
        """How long to wait before the next request, after so many in a row that left something undecided."""
        if not failures:
            return 0.0
        doubled = min(self.backoff_min_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), self.backoff_max_s)
        return doubled * self._randomness.uniform(0.5, 1.0)

    def _start(self) -> None:
        """Something waits: send it, unless that is going on already."""
        if self._sending is None and not self._is_closed:
            self._sending = self._loop.create_task(self._send_all())
            self._sending.add_done_callback(self._on_task_ended)

    async def close(self) -> None:
        """What waits is not sent, and no answer is taken up any more."""
        self._is_closed = True
        if self._sending is not None:
            sending = self._sending
            sending.cancel()
            await asyncio.wait([sending])

    async def _send_all(self) -> None:
        failures = 0
        try:
            while self._has_waiting():
                if pause_s := self._pause_s(failures):
                    await asyncio.sleep(pause_s)
                if asked := self._take():
                    response = await self._ask(asked)
                    failures = 0 if self._settle(asked, response) else failures + 1
        finally:
            # Not when the task is done, but now: what comes from here on needs another.
            self._sending = None

    async def _ask(self, asked: Mapping[Place, E]) -> R | None:
        """The response; None if the request as a whole failed."""
        try:
            # Sending a request twice is safe: the controller finds what the first one asked for done.
            response = await self._channel.ask(
                self.api_key, self._request(asked), TIMEOUT_S, retry=True, purpose=self.purpose
            )
        except KafkaError as error:
            self._logger.info(
                f"the controller did not answer a request about {self.content}", error=error.message, count=len(asked)
            )
            return None
        code = error_code(top_level_error(response))
        if code is not ErrorCode.NONE:
            self._logger.warning(
                f"the controller refused {self.content}, they will be sent again", error=code.name, count=len(asked)
            )
            return None
        return response
