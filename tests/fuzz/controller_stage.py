"""The controller listener under fire: what the quorum says to itself, and what brokers say to the active controller.

A sound request may do harm: a heartbeat fences a broker, a registration puts one where none is. So what must hold here holds
again after a while.

Always true: after each case the node is the active controller, its broker is unfenced, registered as it registered itself,
and alone; it never speaks to any host but this one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strandline.api.requests.error_reply import contains_error
from strandline.api.table import BROKER_APIS, CONTROLLER_APIS
from strandline.client.aio import AsyncioIo
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage
from strandline.metadata.initial_voters import InitialVoter, voters_record
from strandline.node.log_dirs import format_dirs
from strandline.wire import messages

from .batches import Batches
from .quorum_samples import HERE, QuorumSamples
from .stage import BACK_WITHIN_S, Stage

UNREGISTER_BROKER = 64
EPOCH_HIGH = 1 << 30
"""Flipped bits take the epoch up and nothing takes it down. Close to the last one a node that must campaign gives up, so
the quorum begins anew before that."""


class ControllerStage(Stage):
    """The only voter of a static quorum (kraft.version 0)."""

    listener = "CONTROLLER"
    apis = CONTROLLER_APIS
    sound_share = 0.4

    def __init__(self, root: Path) -> None:
        super().__init__(root / "0")
        self.answers: Counter[tuple[str, ErrorCode]] = Counter()
        """The first error in each answer, NONE if there is none: how deep the requests get."""
        self._generation = 0
        self._registered: BrokerImage | None = None
        """As it was before anything was sent."""
        self._connect = AsyncioIo.connect

    def cases(self) -> list[tuple[int, int]]:
        """What the broker listener does not serve, or serves in another way."""
        return [
            (api.key, version)
            for api in self.apis.values()
            if not api.forwarded and (api.key not in BROKER_APIS or BROKER_APIS[api.key].handle is not api.handle)
            for version in api.versions
        ]

    def samples(self, chance: random.Random) -> QuorumSamples:
        return QuorumSamples(chance, lambda: self.node, self.topics, Batches(chance, int(time.time() * 1000)))

    def settings(self) -> dict[str, str]:
        return {
            **super().settings(),
            # A leadership or a session that ends is back soon.
            "controller.quorum.election.timeout.ms": "10",
            "controller.quorum.fetch.timeout.ms": "20",
            "controller.quorum.request.timeout.ms": "500",
            "broker.heartbeat.interval.ms": "50",
            "metadata.log.max.record.bytes.between.snapshots": "1000",
        }

    async def start(self) -> None:
        async def connect(io: AsyncioIo, host: str, port: int, timeout_s: float, receiver: Any) -> Any:
            if host != HERE:
                raise OSError("no host but this one is there")
            return await self._connect(io, host, port, timeout_s, receiver)

        AsyncioIo.connect = connect  # type: ignore[method-assign, assignment]
        await super().start()
        self._registered = self.node.quorum.committed.brokers[1]

    async def stop(self) -> None:
        await super().stop()
        self._registered = None
        AsyncioIo.connect = self._connect  # type: ignore[method-assign]

    async def send(self, api_key: int, version: int, data: bytes, *, whole: bool) -> None:
        await super().send(api_key, version, data, whole=whole)
        if self.node.quorum.raft.epoch > EPOCH_HIGH:
            await self._begin_anew()
        elif not self.node.quorum.is_active and self.outcomes.total() % 2:
            await self._until(lambda: self.node.quorum.is_active, "the active controller again")

    def read(self, api_key: int, reply: Any) -> None:
        self.answers[self.apis[api_key].name, _code(reply)] += 1

    async def _begin_anew(self) -> None:
        """On an empty disk."""
        await self.stop()
        self._connection = None
        self._generation += 1
        self.root = self.root.with_name(str(self._generation))
        await self.start()

    async def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + BACK_WITHIN_S
        while not reached():
            if time.monotonic() > deadline:
                self._fail(f"not {what} within {BACK_WITHIN_S:.0f} s", None)
                return
            await asyncio.sleep(0.002)

    # Looking after it

    async def tidy(self) -> None:
        if self._connection is not None:
            # As long as it is open, brokers that were made up are alive.
            self._connection.lose()
        if self._registered is not None:
            await self._until(lambda: self.node.quorum.is_active, "the active controller again")
            await self._unregister_impostors()
            await self._until(self._is_at_home, "unfenced again")
        await super().tidy()

    async def _unregister_impostors(self) -> None:
        for broker_id, broker in list(self.node.quorum.committed.brokers.items()):
            if broker_id != 1 or broker.in_controlled_shutdown or not self._is_itself(broker):
                # Its own broker registers again by itself.
                await self.call(UNREGISTER_BROKER, 0, messages.request(UNREGISTER_BROKER)(broker_id=broker_id))

    def _is_at_home(self) -> bool:
        brokers, broker = self.node.quorum.committed.brokers, self.node.context
        if 1 not in brokers or not brokers[1].active or not self._is_itself(brokers[1]):
            return False
        # A controller that has just become active must have heard of it: before that, another process may take its place.
        return broker.controller.liveness.is_live(1, broker.clock.monotonic())

    def _is_itself(self, broker: BrokerImage) -> bool:
        mine = self._registered
        assert mine is not None
        return (
            broker.incarnation_id,
            broker.endpoints,
            broker.log_dirs,
            broker.cordoned_log_dirs,
            broker.features,
        ) == (
            mine.incarnation_id,
            mine.endpoints,
            mine.log_dirs,
            mine.cordoned_log_dirs,
            mine.features,
        )


def _code(reply: Any) -> ErrorCode:
    return next((code for code in ErrorCode if code and contains_error(reply, code)), ErrorCode.NONE)


class DynamicControllerStage(ControllerStage):
    """The only voter of a dynamic quorum (kraft.version 1), as `--standalone` formats it."""

    def settings(self) -> dict[str, str]:
        settings = super().settings()
        del settings["controller.quorum.voters"]
        return {**settings, "controller.quorum.bootstrap.servers": "127.0.0.1:1"}

    def format(self, randomness: random.Random) -> None:
        voter = InitialVoter(1, HERE, 1, Uuid.draw(randomness))
        cluster_id = str(Uuid.draw(randomness))
        voters = voters_record([voter], self.listener)
        format_dirs(self._disk, [str(self.root)], cluster_id, 1, randomness, voters=voters)
