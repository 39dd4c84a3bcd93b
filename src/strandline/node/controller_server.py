"""The controller in a node: what the active one does of its own accord.

Always true: it acts only while this node is the active controller, and only through decisions on the newest image; a
standby holds the same image and does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from strandline.config.layers import Layers
from strandline.config.node import NodeConfig
from strandline.controller import broker_changes, brokers, leader_balance
from strandline.controller.activation import activation_records
from strandline.controller.election_policy import ElectionPolicy, policy_of
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import BROKER_RESOURCE, BrokerImage, MetadataImage
from strandline.metadata.records import MetadataRecord, NoOpRecord
from strandline.node.logger import Logger
from strandline.node.quorum.quorum import Quorum
from strandline.node.tasks import AsyncWork
from strandline.ports import Clock

STALL_S = 0.1
"""A timer that is later than that was held up."""
Records = list[MetadataRecord]
Step = Callable[[MetadataImage], tuple[Records, bool]]
"""What is to be done now, and whether there is more to do at once."""


class ControllerServer:
    def __init__(
        self,
        config: NodeConfig,
        quorum: Quorum,
        liveness: Liveness,
        clock: Clock,
        logger: Logger,
    ) -> None:
        self._config = config
        self._quorum = quorum
        self._liveness = liveness
        self._clock = clock
        self._logger = logger
        self._bootstrap: Sequence[MetadataRecord] = ()
        self._deadlines_changed = asyncio.Event()
        """The next deadline of a broker may be sooner than it was."""
        self._written_until = -1
        self._brokers: Mapping[int, BrokerImage] = {}

    def use_bootstrap(self, records: Sequence[MetadataRecord]) -> None:
        """The records with which the log of a new cluster begins; to be called before the quorum is opened."""
        self._bootstrap = records

    # What the quorum reports

    async def on_active(self, epoch: int) -> None:
        self._logger.info("active controller", epoch=epoch)
        # Not active any more before that is committed: then there is nothing to take over either.
        await self._quorum.decide(lambda image: (self._activation(image), None))
        self._liveness.take_over(self._quorum.tip, self._clock.monotonic())
        self._deadlines_changed.set()

    def on_inactive(self) -> None:
        self._logger.info("no longer the active controller")
        self._liveness.stand_by()

    def _activation(self, image: MetadataImage) -> Records:
        # A metadata transaction that the leader before left open is ended by the quorum.
        minimum = self._config.topic_defaults.min_insync_replicas
        return activation_records(image, self._bootstrap, min_insync_replicas=minimum)

    def committed(self, image: MetadataImage) -> None:
        if image.brokers is not self._brokers:
            # One that is new has its first session.
            self._brokers = image.brokers
            self._deadlines_changed.set()

    def connection_closed(self, connection_id: int) -> None:
        self._liveness.connection_closed(connection_id, self._clock.monotonic())
        self._deadlines_changed.set()

    def peer_closed(self, node_id: int) -> None:
        self._liveness.peer_closed(node_id, self._clock.monotonic())
        self._deadlines_changed.set()

    # Regular work

    def jobs(self) -> list[AsyncWork[None]]:
        config = self._config
        jobs = [
            self._fence(),
            self._every(config.unclean_leader_election_interval_ms, self._elect_uncleanly),
        ]
        if config.metadata_max_idle_interval_ms > 0:
            jobs.append(self._every(config.metadata_max_idle_interval_ms, self._show_life))
        if config.auto_leader_rebalance_enable:
            jobs.append(self._every(config.leader_imbalance_check_interval_seconds * 1000, self._balance_leaders))
        return jobs

    async def _every(self, interval_ms: int, step: Step) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            while self._quorum.is_active and await self._decide(step):
                pass

    async def _decide(self, step: Step) -> bool:
        """Whether there is more to do at once."""
        try:
            return await self._quorum.decide(step)
        except KafkaError as error:
            # Leadership went while it was decided: the controller that is active now does the same.
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
            return False

    async def _fence(self) -> None:
        """Fence brokers that are gone, as soon as that is known."""
        while True:
            now = self._clock.monotonic()
            due = self._liveness.next_deadline() if self._quorum.is_active else None
            if due is None or due > now:
                self._deadlines_changed.clear()
                try:
                    async with asyncio.timeout(None if due is None else due - now):
                        await self._deadlines_changed.wait()
                except TimeoutError:
                    late_s = self._clock.monotonic() - (due or now)
                    if late_s > STALL_S:
                        # It was this node that stood still: what the brokers sent meanwhile is still to be read.
                        await asyncio.sleep(late_s)
                continue
            await self._decide(self._fence_one)

    def _fence_one(self, image: MetadataImage) -> tuple[Records, bool]:
        now = self._clock.monotonic()
        records, broker_id = brokers.fence_one_overdue(image, self._liveness, now, self._policy(image))
        if broker_id is not None:
            self._logger.warning("fenced a broker that is gone", broker=broker_id)
        return records, broker_id is not None

    def _policy(self, image: MetadataImage) -> ElectionPolicy:
        own = image.config(BROKER_RESOURCE, str(self._config.node_id))
        return policy_of(image, Layers(self._config.layers.static, dynamic_broker=own))

    def _elect_uncleanly(self, image: MetadataImage) -> tuple[Records, bool]:
        return [*broker_changes.unclean_elections(image, self._policy(image))], False

    def _balance_leaders(self, image: MetadataImage) -> tuple[Records, bool]:
        records, may_go_on = leader_balance.balance(image, self._policy(image))
        return [*records], may_go_on

    def _show_life(self, image: MetadataImage) -> tuple[Records, bool]:
        """A record when nothing else was written, so that every node can say how far behind it is in time."""
        idle = image.end_offset == self._written_until
        self._written_until = image.end_offset + idle
        return ([NoOpRecord()] if idle else []), False
