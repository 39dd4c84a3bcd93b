"""What runs in a node, and the end of it: a part that fails ends the node.

Always true: a task that ends with an error is heard of; the first reason why the node can't go on is the one that
counts.
"""

from __future__ import annotations

import asyncio

from strandline.node.logger import Logger
from strandline.node.tasks import AsyncWork


class NodeFailed(Exception):
    """The node can't go on; says why."""


class Running:
    def __init__(self, logger: Logger) -> None:
        self.is_sound = True
        """What is on the log dirs is known to be as it should be."""
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._jobs: list[asyncio.Task[None]] = []
        self._short: dict[asyncio.Task[None], None] = {}
        self.failure: asyncio.Future[None] = self._loop.create_future()

    def spawn(self, work: AsyncWork[None]) -> None:
        """Have something done for as long as the node lives."""
        task = self._loop.create_task(work)
        task.add_done_callback(self.ended)
        self._jobs.append(task)

    def spawn_short(self, work: AsyncWork[None]) -> None:
        """There may be many of these in a node's life, so each is forgotten when it is done."""
        task = self._loop.create_task(work)
        self._short[task] = None
        task.add_done_callback(self._short_ended)

    def _short_ended(self, task: asyncio.Task[None]) -> None:
        self._short.pop(task, None)
        self.ended(task)

    def ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("a part of the node failed", exc_info=error)
            self.fail(str(error))

    def fail(self, reason: str) -> None:
        """The node can't go on, and what it has can't be trusted."""
        self.is_sound = False
        self.leave(reason)

    def leave(self, reason: str) -> None:
        """The node can't go on, but there is nothing wrong with what it has."""
        if not self.failure.done():
            self.failure.set_exception(NodeFailed(reason))

    async def failed(self) -> None:
        """Returns never; raises NodeFailed once the node can't go on."""
        await asyncio.shield(self.failure)

    async def end(self) -> None:
        tasks = [*self._jobs, *self._short]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.failure.cancel()
